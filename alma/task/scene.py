"""What a state looks like, as plain data, from which the viewer draws pages and pictures.

Scenes contain no colours: everything is drawn in the colour of its subtask, agents in that of their allocation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Point = tuple[float, float]
"""(x, y) on the map; x points east and y north."""

Shape = Literal["disc", "square", "triangle", "diamond", "hexagon"]

Icon = Literal["flame", "clock", "tick", "cross"]

Stroke = Literal["attack", "help"]
"""The kind of a line between two entities."""


@dataclass(frozen=True)
class Marker:
    """An entity as it is drawn on the map. Its name, shape, radius and letter must not change during an episode."""

    name: str
    """The kind of entity: `builder`, `zealot`."""
    at: Point
    shape: Shape = "disc"
    radius: float = 0.4
    """In units of the map."""
    letter: str = ""
    """Drawn on the entity."""
    bars: Mapping[str, float] = field(default_factory=dict)
    """Bars, such as health, from 0 to 1, by name; the names must not change during an episode."""
    icons: Mapping[Icon, float] = field(default_factory=dict)
    """Icons drawn on the entity, with their strength from 0 (invisible) to 1."""
    status: str = ""
    """The condition of the entity, in a word or two: `burned down`."""


@dataclass(frozen=True)
class Place:
    """A region of the map that is not an entity, such as a base. Only its label may change during an episode."""

    at: Point
    radius: float
    label: str = ""
    subtask: int | None = None
    """The subtask in whose colour it is drawn."""


@dataclass(frozen=True)
class Line:
    """An interaction between two entities, drawn as a line: a shot, a heal."""

    start: int
    """Index of the entity that acts."""
    end: int
    """Index of the entity that is acted on."""
    kind: Stroke = "attack"


@dataclass(frozen=True)
class Scene:
    """What one state looks like."""

    size: Point
    """Width and height of the map, whose corner is (0, 0)."""
    markers: tuple[Marker | None, ...]
    """One for each entity, agents first; None for absent and dead entities."""
    places: tuple[Place, ...] = ()
    """Regions of the map; their number must not change during an episode."""
    lines: tuple[Line, ...] = ()
    grid: bool = False
    """Whether the map is a grid of cells; points are then centres of cells."""
    subtask: str = "subtask"
    """What a subtask is called: `building`, `army`."""
    standing: tuple[str, ...] = ()
    """How each subtask stands, in a word or two: `on fire`, `retreats`; empty for subtasks that are absent."""
