"""Episodes as pictures, for papers and wherever no page can be shown: the same map and timeline as the page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from jaxtyping import Array, Bool, Int
from PIL import Image

from alma.task.scene import Marker, Point, Scene
from alma.task.task import Task
from alma.task.view import NOBODY
from alma.viewer.canvas import FAINT, INK, Canvas
from alma.viewer.colours import BARS, FLAME, LINES, colour_of, ink_on
from alma.viewer.page_data import Side, whole
from alma.viewer.record import Recording

WIDTH, MARGIN, HEADER = 560, 14, 40
ROW, MARKS, NAMES = 18, 36, 92
"""Of the timeline: height of a row, height of the marks above the rows, and width of the names."""
GROUND, GRID, OVER, PLAYHEAD = "#f4f1e9", "#e6e1d5", "#d9d7d0", "#7a3fc4"


def draw_frames(task: Task, sides: Sequence[Side]) -> list[Image.Image]:
    """Frames of the first episode of every side, next to each other; a shorter episode stays at its last frame."""
    panels = [Panel(task, side) for side in sides]
    steps = max(panel.recording.length for panel in panels) + 1
    return [_beside([panel.draw(step, steps - 1) for panel in panels]) for step in range(steps)]


def draw_map(
    scene: Scene,
    allocation: Int[Array | np.ndarray, "A"],
    subtask: Int[Array | np.ndarray, "E"],
    active: Bool[Array | np.ndarray, "M"],
) -> Image.Image:
    """The map of one scene alone, without a timeline."""
    east, north = scene.size
    canvas = Canvas(WIDTH, HEADER + (WIDTH - 2 * MARGIN) * north / east + MARGIN)
    MapPicture(canvas, scene, allocation, subtask, active).draw()
    return canvas.finish()


def _beside(pictures: list[Image.Image]) -> Image.Image:
    joint = Image.new("RGB", (sum(p.width for p in pictures), max(p.height for p in pictures)), "white")
    left = 0
    for picture in pictures:
        joint.paste(picture, (left, 0))
        left += picture.width
    return joint


@dataclass(frozen=True)
class Panel:
    """The picture of one side's first episode."""

    task: Task
    side: Side

    @property
    def recording(self) -> Recording:
        return self.side.recordings[0]

    @cached_property
    def scenes(self) -> list[Scene]:
        return whole([self.task.scene(self.recording.state(step)) for step in range(self.recording.length + 1)])

    @cached_property
    def agents(self) -> list[int]:
        """Agents that are present at any time."""
        return np.flatnonzero(np.any(self.recording.agents_present, axis=0)).tolist()

    def draw(self, step: int, steps: int) -> Image.Image:
        """Draw one frame; the timeline is `steps` long."""
        step = min(step, self.recording.length)
        east, north = self.scenes[0].size
        map_height = (WIDTH - 2 * MARGIN) * north / east
        canvas = Canvas(WIDTH, HEADER + map_height + MARKS + len(self.agents) * ROW + 2 * MARGIN)
        canvas.text((MARGIN, HEADER / 2), self._caption(step), 17, INK)
        frames = self.recording.frames
        MapPicture(
            canvas, self.scenes[step], frames.allocation[step], frames.view.subtask[step], frames.view.active[step]
        ).draw()
        top = HEADER + map_height + MARGIN
        TimelinePicture(canvas, self.recording, self._names(), top, steps).draw(step)
        return canvas.finish()

    def _caption(self, step: int) -> str:
        labels, recording = self.side.labels, self.recording
        what = [labels.method or self.task.spec.name, *([f"under {labels.allocator}"] if labels.allocator else [])]
        ending = ("solved" if recording.success else "not solved") if step == recording.length else ""
        return "   ".join([" ".join(what), f"step {step}", ending])

    def _names(self) -> dict[int, str]:
        markers = self.scenes[0].markers
        return {agent: f"{marker.name if (marker := markers[agent]) else 'agent'} {agent}" for agent in self.agents}


@dataclass(frozen=True)
class MapPicture:
    """Draws the map of a scene, in map units; north is up."""

    canvas: Canvas
    scene: Scene
    allocation: Int[Array | np.ndarray, "A"]
    subtask: Int[Array | np.ndarray, "E"]
    """As in `View`: the subtasks of the entities that are no agents."""
    active: Bool[Array | np.ndarray, "M"]

    @property
    def scale(self) -> float:
        return (WIDTH - 2 * MARGIN) / self.scene.size[0]

    def at(self, place: Point) -> Point:
        return MARGIN + place[0] * self.scale, HEADER + (self.scene.size[1] - place[1]) * self.scale

    def shown(self, which: slice) -> list[tuple[Marker, int]]:
        """Present entities with their subtasks; those of agents are the ones they are allocated to."""
        subtasks = [*self.allocation.tolist(), *self.subtask[len(self.allocation) :].tolist()]
        pairs = zip(self.scene.markers[which], subtasks[which], strict=True)
        return [(marker, subtask) for marker, subtask in pairs if marker is not None]

    def draw(self) -> None:
        agents = len(self.allocation)
        ours, others = self.shown(slice(agents)), self.shown(slice(agents, None))
        self._draw_ground()
        for marker, subtask in ours:
            members = [other.at for other, belongs in others if belongs == subtask != NOBODY]
            self._draw_link(marker, members, colour_of(subtask))
        for marker, subtask in others:
            self._draw_marker(marker, subtask, "white", faint=bool(subtask != NOBODY and not self.active[subtask]))
        self._draw_lines()
        for marker, subtask in ours:
            self._draw_marker(marker, subtask, INK)

    def _draw_ground(self) -> None:
        canvas, (east, north) = self.canvas, self.scene.size
        canvas.block(self.at((0, north)), east * self.scale, north * self.scale, GROUND, 6)
        if self.scene.grid:
            for i in range(1, int(east)):
                canvas.line([self.at((i, 0)), self.at((i, north))], GRID, 1)
            for i in range(1, int(north)):
                canvas.line([self.at((0, i)), self.at((east, i))], GRID, 1)
        for place in self.scene.places:
            if not place.radius:
                continue
            colour = FAINT if place.subtask is None else colour_of(place.subtask)
            x, y = self.at(place.at)
            canvas.circle((x, y), place.radius * self.scale, colour + "30", colour)
            label = place.label if place.subtask is None else f"{place.subtask} {place.label}"
            canvas.text((x, y + (place.radius + 0.7) * self.scale), label, 12, INK, "mm")

    def _draw_link(self, agent: Marker, members: list[Point], colour: str) -> None:
        """Draw a line from an agent to the centre of its subtask's entities."""
        if members:
            x, y = np.mean(members, axis=0).tolist()
            self.canvas.line([self.at(agent.at), self.at((x, y))], colour + "a0", 3)

    def _draw_lines(self) -> None:
        for line in self.scene.lines:
            start, end = self.scene.markers[line.start], self.scene.markers[line.end]
            if start is not None and end is not None:
                self.canvas.line([self.at(start.at), self.at(end.at)], LINES[line.kind], 2)

    def _draw_marker(self, marker: Marker, subtask: int, edge: str, faint: bool = False) -> None:
        """Draw an entity, faint if its subtask is not active."""
        canvas, (x, y) = self.canvas, self.at(marker.at)
        radius = max(marker.radius * self.scale, 8)
        colour = OVER if faint else colour_of(subtask)
        canvas.shape(marker.shape, (x, y), radius, colour, colour_of(subtask) if faint else edge)
        if not (marker.icons.get("tick") or marker.icons.get("cross")):
            letter = marker.letter or ("" if subtask == NOBODY else str(subtask))
            canvas.text((x, y), letter, max(9, round(0.9 * radius)), INK if faint else ink_on(colour), "mm")
        self._draw_icons(marker, x, y, radius)
        bars = [(share, BARS[name]) for name, share in marker.bars.items() if name in BARS]
        for row, (share, bar) in enumerate(bars):
            corner = (x - radius, y - 1.15 * radius - 4 * (row + 1))
            canvas.block(corner, 2 * radius, 3, OVER)
            canvas.block(corner, max(2 * radius * share, 0.5), 3, bar)

    def _draw_icons(self, marker: Marker, x: float, y: float, radius: float) -> None:
        canvas, icons = self.canvas, marker.icons

        def around(points: Sequence[Point], size: float = radius, left: float = 0, down: float = 0) -> list[Point]:
            return [(x + left + size * dx, y + down + size * dy) for dx, dy in points]

        if icons.get("tick"):
            canvas.line(around(TICK), INK, 3)
        if icons.get("cross"):
            for stroke in CROSS:
                canvas.line(around(stroke), INK, 3)
        if share := icons.get("clock"):
            canvas.pie((x + 0.75 * radius, y - 0.75 * radius), 0.4 * radius, share, INK)
        if fire := icons.get("flame"):
            size = radius * (0.45 + 0.5 * fire)
            for part, colour in zip((size, 0.55 * size), FLAME, strict=True):
                canvas.fill(around(DROP, part, -0.95 * radius, 0.3 * radius), colour)


TICK = [(-0.45, 0.05), (-0.1, 0.4), (0.5, -0.4)]
CROSS = [[(-0.4, -0.4), (0.4, 0.4)], [(-0.4, 0.4), (0.4, -0.4)]]
DROP = [
    (0.9 * math.sin(angle) * math.sin(angle / 2) ** 1.5, -math.cos(angle) * (1.25 if math.cos(angle) > 0 else 0.8))
    for angle in np.linspace(0, 2 * math.pi, 40, endpoint=False).tolist()
]
"""The outline of a flame: a drop with its tip up."""


@dataclass(frozen=True)
class TimelinePicture:
    """Draws the timeline: a row for each agent, coloured by allocation, with decisions and finished subtasks above."""

    canvas: Canvas
    recording: Recording
    names: dict[int, str]
    top: float
    steps: int

    def x(self, step: int) -> float:
        return MARGIN + NAMES + step / self.steps * (WIDTH - 2 * MARGIN - NAMES - 10)

    def draw(self, step: int) -> None:
        """Draw the timeline with the playhead at a step."""
        canvas, top = self.canvas, self.top
        rows = {agent: top + MARKS + row * ROW for row, agent in enumerate(self.names)}
        bottom = top + MARKS + len(rows) * ROW
        for decision in self.recording.decisions:
            x = self.x(decision)
            canvas.line([(x, top + 10), (x, bottom)], GRID, 1)
            canvas.fill([(x - 5, top), (x + 5, top), (x, top + 9)], FAINT)
        for agent, y in rows.items():
            canvas.text((MARGIN + NAMES - 8, y + ROW / 2), self.names[agent], 12, INK, "rm")
            self._draw_row(agent, y)
        for when, agent in self.recording.deaths:
            x, y = self.x(when + 1), rows[agent] + ROW / 2
            for turn in (1, -1):
                canvas.line([(x - 4, y - 4 * turn), (x + 4, y + 4 * turn)], INK, 2)
        for when, subtask in self.recording.completions:
            at, colour = (self.x(when + 1), top + 22), colour_of(subtask)
            canvas.shape("diamond", at, 7, colour, INK, 1)
            canvas.text(at, str(subtask), 9, ink_on(colour), "mm")
        canvas.line([(self.x(step), top), (self.x(step), bottom)], PLAYHEAD, 3)

    def _draw_row(self, agent: int, y: float) -> None:
        """Draw a bar for each stretch of constant allocation, while the agent is present."""
        there = np.flatnonzero(self.recording.agents_present[: self.recording.length, agent]).tolist()
        allocation = self.recording.frames.allocation[:, agent]
        for subtask, group in groupby(there, key=lambda step: int(allocation[step])):
            stretch = list(group)
            left, right, colour = self.x(stretch[0]), self.x(stretch[-1] + 1), colour_of(subtask)
            self.canvas.block((left + 0.5, y + 1.5), max(right - left - 1, 1), ROW - 3, colour, 3)
            if subtask != NOBODY and right - left > 10:
                self.canvas.text(((left + right) / 2, y + ROW / 2), str(subtask), 11, ink_on(colour), "mm")
