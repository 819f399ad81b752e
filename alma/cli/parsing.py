"""Arguments become commands, which are dataclasses; tyro does the parsing (see `mirrors.py`).

Values are checked before tyro sees them, and ranges when the command is built, so that every error is one line that
names the flag and says what to write.
"""

import dataclasses
import difflib
import itertools
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro

from alma.cli.mirrors import (
    FLAT,
    Hidden,
    dataclasses_in,
    hidden_below,
    is_required,
    mirror_type,
    mirror_value,
    split_annotation,
)

Command = TypeVar("Command")

HELP = ("-h", "--help")


def read(
    kind: type[Command],
    arguments: list[str],
    prog: str,
    defaults: Mapping[str, Any] | None = None,
    hidden: Hidden = frozenset(),
) -> Command:
    """The command that the arguments ask for. Raises a ValueError of one line that names the help if they are wrong."""
    with errors_name_help(prog):
        found, unknown = parse(kind, arguments, prog, defaults, hidden)
        if unknown:
            raise ValueError(_complaint(kind, unknown))
        return build(found)


@contextmanager
def errors_name_help(prog: str) -> Iterator[None]:
    """Context manager that adds to errors where the help is."""
    try:
        yield
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
    if "--" in arguments:
        raise ValueError("leave out --: what does not begin with - is never taken for an option")
    check_values(kind, arguments)
    shown: Any = mirror_type(kind, hidden)
    start = {name: mirror_value(value, hidden_below(hidden, name)) for name, value in (defaults or {}).items()}
    default = {"default": shown(**start)} if start else {}
    return tyro.cli(shown, prog=prog, args=arguments, return_unknown_args=True, **default)


# ---- the flags of a command, and their values


class Flag(NamedTuple):
    """A flag as it is written, and the type of its value."""

    name: str
    type: Any


def flags(kind: type, prefix: str = "--") -> Iterator[Flag]:
    """All flags of a command."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        inner, marks = split_annotation(hint)
        nested = dataclasses_in(inner)
        for part in nested:
            yield from flags(part, _prefix_below(prefix, name, hint))
        if not nested and tyro.conf.Positional not in marks:
            yield Flag(prefix + _written(name), inner)


def _written(name: str) -> str:
    """A name as tyro spells it in flags."""
    return name.replace("_", "-")


def _prefix_below(prefix: str, name: str, hint: Any) -> str:
    """The prefix of the flags of a nested dataclass."""
    return prefix if FLAT in split_annotation(hint)[1] else f"{prefix}{_written(name)}."


def check_values(kind: type, arguments: list[str]) -> None:
    """Raise a ValueError if a flag has no value, or one of another type: tyro would frame its error in a box."""
    known = {flag.name: flag.type for flag in flags(kind)}
    for argument, following in itertools.zip_longest(arguments, arguments[1:]):
        name, equals, text = argument.partition("=")
        if (hint := known.get(_written(name))) is None:
            continue
        if hint is bool:
            if equals:
                raise ValueError(f"{name} takes no value: write {name} alone")
            continue
        wanted = _wanted(hint)
        value = text if equals else following
        if value is None or (not equals and (value.startswith("--") or value in HELP)):
            raise ValueError(f"{name} needs a value" + (f": {wanted}" if wanted else ""))
        if not _fits(hint, value):
            raise ValueError(f"{name} must be {wanted}, not {value!r}")


def _alternatives(hint: Any) -> list[Any]:
    """The types that a value may have; None only stands for a flag that was not given."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [part for part in parts if part is not type(None)]


def _choices(hint: Any) -> tuple[Any, ...]:
    return tuple(choice for part in _alternatives(hint) if get_origin(part) is Literal for choice in get_args(part))


def _wanted(hint: Any) -> str:
    """A description of valid values of a flag; empty if any text is valid."""
    if choices := _choices(hint):
        return f"one of {', '.join(choices)}"
    kinds = _alternatives(hint)
    return "a whole number" if int in kinds else "a number" if float in kinds else ""


def _fits(hint: Any, text: str) -> bool:
    """Whether a text is such a value."""
    if choices := _choices(hint):
        return text in choices
    number = next((kind for kind in _alternatives(hint) if kind in (int, float)), None)
    if number is None:
        return True
    try:
        number(text)
    except ValueError:
        return False
    return True


# ---- commands from mirrors


def build(value: Any, prefix: str = "--") -> Any:
    """The dataclass that a mirror stands for, with the values of the mirror. Errors name flags with this prefix."""
    kind = getattr(type(value), "_mirrors", None)
    if kind is None:
        return value
    hints = get_type_hints(kind, include_extras=True)
    values = {
        field.name: build(getattr(value, field.name), _prefix_below(prefix, field.name, hints[field.name]))
        for field in dataclasses.fields(kind)
    }
    for field in dataclasses.fields(kind):
        if is_required(field) and values[field.name] is None:
            raise ValueError(f"name a {field.name}")
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(_with_flag(str(error), kind, prefix)) from None


def _with_flag(message: str, kind: type, prefix: str) -> str:
    """An error about an option, which begins with the option's name, with the flag in place of the name."""
    name, space, rest = message.partition(" ")
    if name in {field.name for field in dataclasses.fields(kind)}:
        return f"{prefix}{_written(name)}{space}{rest}"
    below = [
        flag.name for flag in flags(kind, prefix) if flag.name.endswith((f".{_written(name)}", f"--{_written(name)}"))
    ]
    return f"{below[0]}{space}{rest}" if len(below) == 1 else message


def _complaint(kind: type, unknown: list[str]) -> str:
    """The error message about arguments that a command does not know."""
    wrong = next((argument for argument in unknown if argument.startswith("-")), None)
    if wrong is None:
        return f"{unknown[0]!r} is one argument too many"
    wrong = wrong.partition("=")[0]
    known, meant = [flag.name for flag in flags(kind)], _written(wrong)
    same_end = [flag for flag in known if flag.rpartition(".")[2] == meant.lstrip("-")]
    close = same_end or difflib.get_close_matches(meant, known, n=2, cutoff=0.75)
    return f"there is no option {wrong}" + (f": did you mean {' or '.join(close)}?" if close else "")
