"""Preset files: the name of a preset, and options that differ from it, as JSON or TOML.

For example `{"preset": "fast", "options": {"actors.n_step": 3}}`. Loading one is reading data: nothing is run.
"""

import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from alma.files import DATA_FILES, brief, read_data
from alma.training.options import TrainingOptions, with_overrides
from alma.training.presets import PRESETS, preset

KEYS = {"preset", "options", "about"}
"""`about` is for people: it is not read."""


@dataclass(frozen=True)
class PresetFile:
    """The contents of a preset file."""

    preset: str
    """The name of the preset that it starts from."""
    options: Mapping[str, Any]
    """The options that differ from it, by their path."""


def find_preset(name: str, task: str = "") -> tuple[str, TrainingOptions]:
    """The preset that a name or a file stands for: the name of the preset that it starts from, and the options."""
    if not is_preset_file(name):
        return name, preset(name, task)
    found = read_preset(name)
    try:
        return found.preset, with_overrides(preset(found.preset, task), found.options)
    except ValueError as error:  # values that do not go together
        raise ValueError(f"{name}: {brief(error)}") from None


def read_preset(name: str) -> PresetFile:
    """Read a preset file. Raises a ValueError that names file and key if it is invalid."""
    data = read_data(Path(name))
    if unknown := sorted(set(data) - KEYS):
        raise ValueError(f"{name}: there is no key {shortened(unknown[0])}: choose from {', '.join(sorted(KEYS))}")
    base, options = data.get("preset", "fast"), data.get("options", {})
    if not isinstance(base, str) or base not in PRESETS:
        raise ValueError(f"{name}: preset: {shortened(base)} is unknown: choose from {', '.join(PRESETS)}")
    if not isinstance(options, dict):
        raise ValueError(f"{name}: options: write options by their path, such as {{'actors.n_step': 3}}")
    overrides = dict(flat(options))
    for path, value in overrides.items():
        try:
            check_option(path, value)
        except ValueError as error:
            raise ValueError(f"{name}: {brief(error)}") from None
    return PresetFile(base, overrides)


def is_preset_file(name: str) -> bool:
    """Whether a preset is given as a file rather than by its name."""
    return name.endswith(DATA_FILES)


def preset_stem(name: str) -> str:
    """The name of a preset as part of a folder's name."""
    return Path(name).stem if is_preset_file(name) else name


def flat(options: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Options by their whole path: `{"actors": {"n_step": 3}}` becomes `actors.n_step`."""
    for name, value in options.items():
        path = f"{above}{name}"
        if isinstance(value, dict):
            yield from flat(value, f"{path}.")
        else:
            yield path, value


def check_option(path: str, value: Any) -> None:
    """Raise a ValueError if there is no option of this path, or the value is not of its type."""
    kind = option_type(path)
    check_value(path, kind, value)


def check_value(path: str, kind: Any, value: Any) -> None:
    """Raise a ValueError unless the value is of the type that an entry of this path has."""
    if not _fits(kind, value):
        raise ValueError(f"{path} must be {_described(kind)}, not {shortened(value)}")


def shortened(value: Any) -> str:
    """A value as it is written, for messages; what is long is cut."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


LONGEST = 60
"""Most characters of a value in a message."""


def option_type(path: str) -> Any:
    """The type of a training option. Raises a ValueError if there is none of this path, or a group of options."""
    kind: Any = TrainingOptions
    for name in path.split("."):
        hints = typing.get_type_hints(kind) if is_dataclass(kind) else {}
        if name not in hints:
            known = ", ".join(hints) or "nothing"
            raise ValueError(f"{path}: there is no option {name!r} here: choose from {known}")
        kind = hints[name]
    if is_dataclass(kind):
        raise ValueError(f"{path} is a group of options: name one of them, such as {path}.{next(iter(_names(kind)))}")
    return kind


def _names(kind: Any) -> list[str]:
    return list(typing.get_type_hints(kind))


def _fits(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return type(value) is kind


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(kind, "a table")
