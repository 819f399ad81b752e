"""The options of a simulator that is named as `module:Class`: its own, and those that all simulators have."""

import inspect
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from typing import Any

from alma.simulators.host_task import HostTask
from alma.task.registry import Entry
from alma.task.simulator import Simulator

OF_ALL = tuple(option for option in fields(HostTask) if option.name not in ("simulator", "options"))


def entry_of(name: str, kind: type[Simulator]) -> Entry:
    """The registry entry of a simulator: its options, and how to build its task."""
    if missing := sorted(kind.__abstractmethods__):
        raise ValueError(f"{name} lacks {', '.join(missing)}: a simulator must define them")
    own = own_options(kind)
    if taken := [option.name for option in OF_ALL if option.name in own]:
        raise ValueError(f"{name}: `{taken[0]}` is an option of all simulators: give this one another name")

    def build(options: Any) -> HostTask:
        of_all = {option.name: getattr(options, option.name) for option in OF_ALL}
        return HostTask(name, {option: getattr(options, option) for option in own}, **of_all)

    return Entry(_options_type(kind), build)


def own_options(kind: type[Simulator]) -> dict[str, tuple[Any, Any]]:
    """Type and default of what a simulator is made with: the fields of a dataclass, or the keywords of `__init__`."""
    if is_dataclass(kind):
        return {option.name: (option.type, option) for option in fields(kind)}
    parameters = inspect.signature(kind).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: (p.annotation, MISSING if p.default is p.empty else p.default) for p in named}


def _options_type(kind: type[Simulator]) -> type:
    """A dataclass of all options. It goes by the name of `HostTask`, so that help finds their explanations there."""
    of_all = [(option.name, option.type, option.default) for option in OF_ALL]
    doc = "" if (kind.__doc__ or "").startswith(f"{kind.__name__}(") else kind.__doc__
    namespace = {"__doc__": doc, "__module__": HostTask.__module__}
    if is_dataclass(kind):  # a subclass of it, which checks its own options
        frozen = kind.__dataclass_params__.frozen
        return make_dataclass(HostTask.__name__, of_all, bases=(kind,), namespace=namespace, frozen=frozen)
    own = [(option, *_with_default(*described)) for option, described in own_options(kind).items()]
    return make_dataclass(HostTask.__name__, [*own, *of_all], namespace=namespace, frozen=True)


def _with_default(kind: Any, default: Any) -> tuple[Any, Field]:
    return kind, field() if default is MISSING else field(default_factory=lambda: default)
