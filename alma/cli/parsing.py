"""Arguments become commands, which are dataclasses; tyro does the parsing.

tyro never sees the commands themselves but mirrors of them: dataclasses with the same fields, defaults and help texts
that refuse nothing. Which values can be is decided when a command is built from its mirror, after all arguments are
known: so that the first look at them need not make sense yet, and complaints are told in our words.
"""

import dataclasses
import difflib
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro

from alma.cli.docstrings import field_docs

Command = TypeVar("Command")

Hidden: TypeAlias = frozenset[str]
"""Flags that the help leaves out, as paths of fields: `actors.clip`, or `actors.networks` for all below it."""

FLAT = tyro.conf.arg(name="")
"""Marks a field whose own fields are flags without its name in front of them."""


def read(
    kind: type[Command],
    arguments: list[str],
    prog: str,
    defaults: Mapping[str, Any] | None = None,
    hidden: Hidden = frozenset(),
) -> Command:
    """The command that the arguments ask for; what is wrong with them is told in one line that names the help."""
    try:
        found, unknown = parse(kind, arguments, prog, defaults, hidden)
        if unknown:
            raise ValueError(_complaint(kind, unknown))
        return build(found)
    except ValueError as error:
        raise ValueError(f"{error} (see {prog} --help)") from None


def parse(
    kind: type,
    arguments: list[str],
    prog: str,
    defaults: Mapping[str, Any] | None = None,
    hidden: Hidden = frozenset(),
) -> tuple[Any, list[str]]:
    """A mirror of the command with what the arguments say, and the arguments that it does not know.

    `defaults` are for fields that start from other values than the dataclass has. Hidden flags are not known either.
    """
    shown: Any = mirror(kind, hidden)
    start = {name: _mirrored(value, _below(hidden, name)) for name, value in (defaults or {}).items()}
    default = {"default": shown(**start)} if start else {}
    return tyro.cli(shown, prog=prog, args=arguments, return_unknown_args=True, **default)


@functools.cache
def mirror(kind: type, hidden: Hidden = frozenset()) -> type:
    """A dataclass with the same fields, nested ones mirrored too, that refuses nothing."""
    docs, hints = field_docs(kind), get_type_hints(kind, include_extras=True)
    fields = [
        (field.name, *_mirrored_field(field, hints[field.name], docs.get(field.name, ""), hidden))
        for field in dataclasses.fields(kind)
    ]
    namespace = {"__doc__": kind.__doc__, "_mirrors": kind}
    return dataclasses.make_dataclass(kind.__name__, fields, namespace=namespace, kw_only=True)


def build(value: Any) -> Any:
    """The dataclass that a mirror stands for, with the values of the mirror."""
    kind = getattr(type(value), "_mirrors", None)
    if kind is None:
        return value
    values = {field.name: build(getattr(value, field.name)) for field in dataclasses.fields(kind)}
    for field in dataclasses.fields(kind):
        if _is_required(field) and values[field.name] is None:
            raise ValueError(f"name a {field.name}")
    return kind(**values)


def flags(kind: type, prefix: str = "--") -> Iterator[str]:
    """All flags of a command."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        inner, marks = _unwrapped(hint)
        nested = _dataclasses_in(inner)
        written = name.replace("_", "-")
        for part in nested:
            yield from flags(part, prefix if FLAT in marks else f"{prefix}{written}.")
        if not nested and tyro.conf.Positional not in marks:
            yield prefix + written


def _complaint(kind: type, unknown: list[str]) -> str:
    """What to say of arguments that a command does not know."""
    wrong = next((argument for argument in unknown if argument.startswith("-")), None)
    if wrong is None:
        return f"{unknown[0]!r} is one argument too many"
    wrong = wrong.partition("=")[0]
    known, meant = list(flags(kind)), wrong.replace("_", "-")
    same_end = [flag for flag in known if flag.rpartition(".")[2] == meant.lstrip("-")]
    close = same_end or difflib.get_close_matches(meant, known, n=2, cutoff=0.75)
    return f"there is no option {wrong}" + (f": did you mean {' or '.join(close)}?" if close else "")


def _mirrored_field(field: dataclasses.Field, hint: Any, doc: str, hidden: Hidden) -> tuple[Any, dataclasses.Field]:
    """Type and default of the same field in a mirror, with what the help says of it."""
    inner, own = _unwrapped(hint)
    below = _below(hidden, field.name)
    if nested := _dataclasses_in(inner):
        marks = [tyro.conf.arg(help=doc or (nested[0].__doc__ if len(nested) == 1 else ""))]
    else:
        marks = [tyro.conf.arg(help=doc, help_behavior_hint=_default_hint)]
        marks.append(_without_none(inner))
        if _is_required(field):
            # That it is missing is noticed by `build`: tyro would stop at once, and not tell of unknown flags.
            marks.append(tyro.conf.arg(help_behavior_hint=lambda default: _default_hint(default) or "(required)"))
            return Annotated[(inner | None, *marks, *own)], _field(lambda: None)
    marks += [tyro.conf.Suppress] if field.name in hidden else []
    mirrored: Any = Annotated[(_mirrored_type(inner, below), *marks, *own)]
    return mirrored, dataclasses.field() if _is_required(field) else _field(lambda: _mirrored(_default(field), below))


def _without_none(hint: Any) -> Any:
    """A mark so that help does not offer None, which only stands for a flag that was not given."""
    choices = [get_args(part) for part in get_args(hint) if get_origin(part) is Literal]
    if not choices:
        return tyro.conf.DisallowNone
    # Here that would cost the error that lists the choices.
    return tyro.conf.arg(metavar="{" + ",".join(choices[0]) + "}")


def _mirrored_type(hint: Any, hidden: Hidden) -> Any:
    """A type with mirrors instead of dataclasses."""
    inner, marks = _unwrapped(hint)
    if marks:
        return Annotated[(_mirrored_type(inner, hidden), *marks)]
    if get_origin(inner) in (Union, types.UnionType):
        return Union[tuple(_mirrored_type(part, hidden) for part in get_args(inner))]  # noqa: UP007
    return mirror(inner, hidden) if _dataclasses_in(inner) else inner


def _mirrored(value: Any, hidden: Hidden) -> Any:
    """The mirror of a dataclass; other values as they are."""
    if not dataclasses.is_dataclass(value):
        return value
    names = [field.name for field in dataclasses.fields(value)]
    shown: Any = mirror(type(value), hidden)  # type: ignore[arg-type]  # a dataclass can be hashed
    return shown(**{name: _mirrored(getattr(value, name), _below(hidden, name)) for name in names})


def _unwrapped(hint: Any) -> tuple[Any, list[Any]]:
    """A type, and the marks it is annotated with."""
    inner, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return inner, marks


def _dataclasses_in(hint: Any) -> list[type]:
    """The dataclass that a type is, or those it is a choice of."""
    parts: list[Any] = [hint, *(_unwrapped(part)[0] for part in get_args(hint))]
    return [part for part in parts if isinstance(part, type) and dataclasses.is_dataclass(part)]


def _below(hidden: Hidden, name: str) -> Hidden:
    """What is hidden of a nested dataclass."""
    return frozenset(path.removeprefix(f"{name}.") for path in hidden if path.startswith(f"{name}."))


def _is_required(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _field(make: Callable[[], Any]) -> Any:
    return dataclasses.field(default_factory=make)


def _default_hint(default: str) -> str:
    """What follows a help text; nothing where there is no default to speak of."""
    return "" if default in ("", "None") else f"(default: {default})"
