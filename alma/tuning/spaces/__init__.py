"""Search spaces as data: which options are searched, and between which values.

A space is a TOML or JSON file with an entry for each option, by its path: a range (`low` and `high`, with `log = true`
for one on a logarithmic scale) or `choices`. A range with whole numbers at both ends is one of whole numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from alma.files import DATA_FILES, brief, read_data
from alma.training.preset_file import check_option, flat, option_type

BUILT_IN = ("actors", "allocator")
"""The spaces that come with the package, one for each level."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`."""

    low: float
    high: float
    log: bool = False
    """Whether to draw from it on a logarithmic scale."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, not {self.low} and {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low must be positive on a logarithmic scale, not {self.low}")

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.low, self.high


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise ValueError(f"choices must be two or more, not {list(self.values)}")

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.values


Space: TypeAlias = Mapping[str, Range | Choices]
"""A search space: the values of each option that is searched, by its path."""


def find_space(name: str) -> Space:
    """A space by its name (`actors`, `allocator`, or `both`), or from a file."""
    if name == "both":
        return {path: values for level in BUILT_IN for path, values in find_space(level).items()}
    if name in BUILT_IN:
        return read_space(Path(__file__).with_name(f"{name}.toml"))
    if not name.endswith(DATA_FILES):
        raise ValueError(f"unknown search space {name!r}: choose from {', '.join(BUILT_IN)}, both, or name a file")
    return read_space(Path(name))


def read_space(path: Path) -> Space:
    """Read a space from a file. Raises a ValueError that names file and option if it is invalid."""
    space = {}
    for option, entry in _entries(read_data(path)):
        try:
            space[option] = _values(entry)
            for value in space[option].ends:
                check_option(option, value)
        except ValueError as error:
            about = "" if str(error).startswith(option) else f"{option}: "
            raise ValueError(f"{path}: {brief(about + str(error))}") from None
    if not space:
        raise ValueError(f"{path}: names no option")
    return space


def _entries(data: Mapping[str, Any], above: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """Entries by the whole path of their option, also where levels are tables of their own."""
    found: dict[str, dict[str, Any]] = {}
    for path, value in flat(data):
        option, _, key = path.rpartition(".")
        found.setdefault(option, {})[key] = value
    return list(found.items())


def _values(entry: Mapping[str, Any]) -> Range | Choices:
    if set(entry) == {"choices"} and isinstance(entry["choices"], list):
        return Choices(tuple(entry["choices"]))
    if {"low", "high"} <= set(entry) <= {"low", "high", "log"}:
        return Range(**entry)
    raise ValueError("write { low = ..., high = ..., log = true } or { choices = [...] }")


def is_whole(option: str) -> bool:
    """Whether an option takes whole numbers."""
    return option_type(option) is int
