"""Mirrors of commands, which tyro parses in their place.

A mirror is a dataclass with the same fields, defaults and help texts, but without validation. Values are validated
when a command is built from its mirror, after all arguments have been parsed: a first pass may then see values that are
only valid with the preset that it finds, and errors do not come in tyro's words.
"""

import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import tyro

from alma.cli.docstrings import field_docs

Hidden: TypeAlias = frozenset[str]
"""Flags that the help leaves out, as paths of fields: `actors.clip`, or `actors.networks` for all below it."""

FLAT = tyro.conf.arg(name="")
"""Marks a field whose own fields are flags without its name in front of them."""


@dataclasses.dataclass(frozen=True)
class Suggested:
    """Marks a text for which shell completion suggests some values, although any other will do too."""

    values: tuple[str, ...]


@functools.cache
def mirror_type(kind: type, hidden: Hidden = frozenset(), completes: bool = False) -> type:
    """A dataclass with the same fields and no validation; nested dataclasses are mirrored too.

    One for shell completion (`completes`) has suggested values as the only ones.
    """
    docs, hints = field_docs(kind), get_type_hints(kind, include_extras=True)
    if completes:
        hints = {name: _as_choice(hint) for name, hint in hints.items()}
    fields = [
        (field.name, *_mirror_field(field, hints[field.name], docs.get(field.name, ""), hidden))
        for field in dataclasses.fields(kind)
    ]
    namespace = {"__doc__": kind.__doc__, "_mirrors": kind}
    return dataclasses.make_dataclass(kind.__name__, fields, namespace=namespace, kw_only=True)


def _mirror_field(field: dataclasses.Field, hint: Any, doc: str, hidden: Hidden) -> tuple[Any, dataclasses.Field]:
    """Type and default of the same field in a mirror, with its help text."""
    inner, own = split_annotation(hint)
    below = hidden_below(hidden, field.name)
    if nested := dataclasses_in(inner):
        marks = [tyro.conf.arg(help=doc or (nested[0].__doc__ if len(nested) == 1 else ""))]
    else:
        # None only stands for a flag that was not given: the help does not offer it.
        marks = [tyro.conf.arg(help=doc, help_behavior_hint=_default_hint), tyro.conf.DisallowNone]
        if is_required(field):
            # That it is missing is noticed by `build`: tyro would stop at once, and not tell of unknown flags.
            marks.append(tyro.conf.arg(help_behavior_hint=lambda default: _default_hint(default) or "(required)"))
            return Annotated[(inner | None, *marks, *own)], _field(lambda: None)
    marks += [tyro.conf.Suppress] if field.name in hidden else []
    mirrored: Any = Annotated[(_mirror_hint(inner, below), *marks, *own)]
    return mirrored, dataclasses.field() if is_required(field) else _field(lambda: mirror_value(_default(field), below))


def _mirror_hint(hint: Any, hidden: Hidden) -> Any:
    """A type with mirrors instead of dataclasses."""
    inner, marks = split_annotation(hint)
    if marks:
        return Annotated[(_mirror_hint(inner, hidden), *marks)]
    if get_origin(inner) in (Union, types.UnionType):
        return Union[tuple(_mirror_hint(part, hidden) for part in get_args(inner))]  # noqa: UP007
    return mirror_type(inner, hidden) if dataclasses_in(inner) else inner


def _as_choice(hint: Any) -> Any:
    """A type with suggested values as the only ones; other types as they are."""
    inner, marks = split_annotation(hint)
    if get_origin(inner) in (Union, types.UnionType):
        union: Any = Union[tuple(map(_as_choice, get_args(inner)))]  # noqa: UP007
        return Annotated[(union, *marks)] if marks else union
    values = tuple(value for mark in marks if isinstance(mark, Suggested) for value in mark.values)
    return Annotated[(Literal[values], *marks)] if values else hint


def mirror_value(value: Any, hidden: Hidden) -> Any:
    """The mirror of a dataclass; other values as they are."""
    if not dataclasses.is_dataclass(value):
        return value
    names = [field.name for field in dataclasses.fields(value)]
    shown: Any = mirror_type(type(value), hidden)  # type: ignore[arg-type]  # a dataclass can be hashed
    return shown(**{name: mirror_value(getattr(value, name), hidden_below(hidden, name)) for name in names})


def split_annotation(hint: Any) -> tuple[Any, list[Any]]:
    """A type without its annotations, and the annotations."""
    inner, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return inner, marks


def dataclasses_in(hint: Any) -> list[type]:
    """The dataclass that a type is, or those it is a choice of."""
    parts: list[Any] = [hint, *(split_annotation(part)[0] for part in get_args(hint))]
    return [part for part in parts if isinstance(part, type) and dataclasses.is_dataclass(part)]


def hidden_below(hidden: Hidden, name: str) -> Hidden:
    """The hidden flags of a nested dataclass, by their paths inside it."""
    return frozenset(path.removeprefix(f"{name}.") for path in hidden if path.startswith(f"{name}."))


def is_required(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _field(make: Callable[[], Any]) -> Any:
    return dataclasses.field(default_factory=make)


def _default_hint(default: str) -> str:
    """The default as it follows a help text; empty for None and empty texts."""
    return "" if default in ("", "None") else f"(default: {default})"
