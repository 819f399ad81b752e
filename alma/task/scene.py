"""What a state looks like, as plain data. A task describes itself once; pages and pictures are drawn from that.

Colours are not said: everything takes the colour of its subtask, agents that of the one they are allocated to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Point = tuple[float, float]
"""On the map, x to the east and y to the north."""

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Colours of subtasks, which people with any kind of colour vision can tell apart (Okabe and Ito)."""

Shape = Literal["disc", "square", "triangle", "diamond", "hexagon"]

Icon = Literal["flame", "clock", "tick", "cross"]

Stroke = Literal["attack", "help"]


@dataclass(frozen=True)
class Thing:
    """An entity on the map. Its name, shape, radius and letter stay what they are through an episode."""

    name: str
    """What it is: `builder`, `zealot`."""
    at: Point
    shape: Shape = "disc"
    radius: float = 0.4
    """In units of the map."""
    letter: str = ""
    """Stands on it."""
    bars: Mapping[str, float] = field(default_factory=dict)
    """Shares from 0 to 1, by name; the same names at all times."""
    icons: Mapping[Icon, float] = field(default_factory=dict)
    """Marks on it with their strength, from 0 (not there) to 1."""
    status: str = ""
    """How it is, in a word or two."""


@dataclass(frozen=True)
class Place:
    """A part of the map that is no entity: a base, where an army comes from. Only its label changes."""

    at: Point
    radius: float
    label: str = ""
    subtask: int | None = None
    """Whose colour it takes."""


@dataclass(frozen=True)
class Line:
    """Something that goes on between two entities: a shot, a heal."""

    start: int
    end: int
    kind: Stroke = "attack"


@dataclass(frozen=True)
class Scene:
    """One state."""

    size: Point
    """Of the map, from (0, 0)."""
    things: tuple[Thing | None, ...]
    """One for each entity, agents first; None for the absent and the dead."""
    places: tuple[Place, ...] = ()
    """As many at all times."""
    lines: tuple[Line, ...] = ()
    grid: bool = False
    """Whether the map is made of cells; then places are their middles."""
    subtask: str = "subtask"
    """What a subtask is: `building`, `army`."""
    standing: tuple[str, ...] = ()
    """How each subtask stands, in a word or two."""
