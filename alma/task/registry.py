"""The registry of tasks by name."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from alma.task.importing import import_by_name
from alma.task.task import Task

PresetOverrides: TypeAlias = Mapping[str, Mapping[str, Any]]
"""What a task overrides in the presets of training, by preset and option path: `{"fast": {"actors.gamma": 0.9}}`."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """How to build a task: a frozen dataclass of options, and a function that builds the task from them."""

    options: type
    build: Callable[[Any], Task]
    overrides: PresetOverrides = dataclasses.field(default_factory=dict)


_tasks: dict[str, Entry] = {}

_adapters: dict[type, Callable[[str, type], Entry]] = {}


def adapt(kind: type, entry_of: Callable[[str, Any], Entry]) -> None:
    """Accept subclasses of another class as tasks, named as `module:Class`; `entry_of` is given name and class."""
    _adapters[kind] = entry_of


def register(name: str, options: type, build: Callable[[Any], Task], overrides: PresetOverrides | None = None) -> None:
    """Register a task under a name; `alma.make` builds it as `build(options(**chosen))`.

    `overrides` are training options that differ from a preset on this task: `{"fast": {"actors.gamma": 0.9}}`.
    """
    if name in _tasks:
        raise ValueError(f"a task named {name!r} exists already: choose another name")
    if not dataclasses.is_dataclass(options):
        raise ValueError(f"the options of a task must be a dataclass, not {options!r}")
    _tasks[name] = Entry(options, build, dict(overrides or {}))


def preset_overrides(name: str, preset: str) -> Mapping[str, Any]:
    """The training options that a task overrides in a preset; none for tasks that are not registered."""
    return _tasks[name].overrides.get(preset, {}) if name in _tasks else {}


def task_names() -> list[str]:
    """The names of all registered tasks, sorted."""
    return sorted(_tasks)


def option_type(name: str) -> type:
    """The dataclass of the options a task takes."""
    return _entry(name).options


def option_fields(name: str) -> tuple[dataclasses.Field, ...]:
    """The options a task takes."""
    return dataclasses.fields(option_type(name))


def make(name: str, **options: Any) -> Task:
    """Build a task by its registered name or as `module:Class`; keywords set its options."""
    entry = _entry(name)
    valid = [field.name for field in option_fields(name)]
    unknown = sorted(set(options) - set(valid))
    if unknown:
        raise ValueError(f"{name} has no option {', '.join(unknown)}: choose from {', '.join(valid)}")
    required = [field.name for field in option_fields(name) if _is_required(field) and field.name not in options]
    if required:
        raise ValueError(f"{name} needs the option {', '.join(required)}: write --set {required[0]}=VALUE")
    return entry.build(entry.options(**options))


def _is_required(field: dataclasses.Field) -> bool:
    return field.init and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def is_imported(name: str) -> bool:
    """Whether a name stands for a class of the user's own, `module:Class`, rather than for a registered task."""
    return name not in _tasks and ":" in name


def _entry(name: str) -> Entry:
    if is_imported(name):
        return _imported(name)
    if name not in _tasks:
        raise ValueError(
            f"unknown task {name!r}: choose from {', '.join(task_names())}, or name a class of your own as module:Class"
        )
    return _tasks[name]


def _imported(name: str) -> Entry:
    """The entry of a class named as `module:Class`: of a task, whose fields are its options, or one that is adapted."""
    found = import_by_name("task", name)
    for kind, entry_of in _adapters.items():
        if isinstance(found, type) and issubclass(found, kind):
            return entry_of(name, found)
    if not (isinstance(found, type) and issubclass(found, Task) and dataclasses.is_dataclass(found)):
        raise ValueError(f"{name!r} must be a dataclass that subclasses alma.Task, or subclass alma.Simulator")
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise ValueError(f"{name!r} must implement {', '.join(missing)}: see alma.Task")
    return Entry(found, lambda task: task)
