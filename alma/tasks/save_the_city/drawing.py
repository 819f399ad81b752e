"""A picture of a city: agents by type, buildings with health and fire, and a line from each agent to its subtask."""

import math

import numpy as np
from PIL import Image

from alma.task import NOBODY, Allocation
from alma.tasks.canvas import FAINT, INK, OVERSAMPLING, Canvas, Point
from alma.tasks.save_the_city.dynamics import State
from alma.tasks.save_the_city.rules import ABSENT, AgentType, BuildingType, Rules

CELL = 34
"""Pixels along one side of a cell."""
HEADER, FOOTER, MARGIN = 40, 84, 14
MIN_WIDTH = 560
"""Room for the legend."""

GRID = "#ece8df"
# Colours that people with any kind of colour vision can tell apart; letters say the same.
AGENT_COLOURS = {
    AgentType.FIREFIGHTER: "#d55e00",
    AgentType.BUILDER: "#0072b2",
    AgentType.GENERALIST: "#009e73",
}
BUILDING_COLOURS = {BuildingType.FAST: "#6f6a8a", BuildingType.SLOW: "#a89f8d"}
COMPLETE, BURNED, HEALTH, FLAME, GLOW, TIMER = "#3d9a50", "#3a3633", "#3d9a50", "#f0502d", "#ffc24d", "#c9302c"


def draw(rules: Rules, state: State, allocation: Allocation, caption: str = "") -> Image.Image:
    """Draw one state; `caption` goes on top."""
    canvas = CityCanvas(rules.grid_size)
    canvas.background(caption or f"step {int(state.time)}")
    buildings = np.flatnonzero(np.asarray(state.building_type) != ABSENT).tolist()
    agents = np.flatnonzero(np.asarray(state.agent_type) != ABSENT).tolist()
    for agent in agents:
        if (subtask := int(allocation[agent])) != NOBODY:
            colour = AGENT_COLOURS[AgentType(int(state.agent_type[agent]))]
            canvas.link(_cell(state.agent_position, agent), _cell(state.building_position, subtask), colour)
    for building in buildings:
        _draw_building(canvas, state, building)
    for agent in agents:
        canvas.agent(_cell(state.agent_position, agent), AgentType(int(state.agent_type[agent])))
    return canvas.finish()


def _cell(positions: object, index: int) -> Point:
    x, y = np.asarray(positions)[index]
    return float(x), float(y)


def _draw_building(canvas: "CityCanvas", state: State, index: int) -> None:
    cell = _cell(state.building_position, index)
    health, fire = float(state.health[index]), float(state.fire[index])
    if health >= 1:
        canvas.block(cell, COMPLETE)
        canvas.tick(cell)
    elif health <= 0:
        canvas.block(cell, BURNED)
        canvas.cross(cell)
    else:
        until_fire = int(state.fire_timer[index]) / max(int(state.fire_interval[index]), 1)
        canvas.block(cell, BUILDING_COLOURS[BuildingType(int(state.building_type[index]))])
        canvas.clock(cell, until_fire)
        if fire > 0:
            canvas.flame(cell, fire)
        canvas.health_bar(cell, health)


class CityCanvas(Canvas):
    """A map to draw on, in cells; north is up."""

    def __init__(self, grid_size: int) -> None:
        self.grid_size = grid_size
        side = grid_size * CELL + 2 * MARGIN
        super().__init__(max(side, MIN_WIDTH), side + HEADER + FOOTER)

    def _centre(self, cell: Point) -> Point:
        x = MARGIN + (cell[0] + 0.5) * CELL
        y = HEADER + MARGIN + (self.grid_size - 0.5 - cell[1]) * CELL
        return x * OVERSAMPLING, y * OVERSAMPLING

    def _box(self, cell: Point, radius: float) -> tuple[float, float, float, float]:
        """The square around a cell's middle, `radius` in cells."""
        x, y = self._centre(cell)
        r = radius * CELL * OVERSAMPLING
        return x - r, y - r, x + r, y + r

    def background(self, caption: str) -> None:
        for i in range(self.grid_size + 1):
            low, high = -0.5, self.grid_size - 0.5
            for ends in (((i - 0.5, low), (i - 0.5, high)), ((low, i - 0.5), (high, i - 0.5))):
                self.pen.line([self._centre(end) for end in ends], fill=GRID, width=OVERSAMPLING)
        self.text((MARGIN, HEADER / 2 + 4), caption, 17, INK)
        self._legend()

    def _legend(self) -> None:
        # Three rows below the map: who walks, what stands, and what the marks on it mean.
        top = self.size[1] - FOOTER
        for column, kind in enumerate(AgentType):
            x = MARGIN + 10 + column * 118
            self.disc((x, top + 12), 8, AGENT_COLOURS[kind], kind.name[0], 10)
            self.text((x + 14, top + 12), kind.name.lower(), 13, FAINT)
        for x, colour, meaning in (
            (0, BUILDING_COLOURS[BuildingType.FAST], "burns fast, seldom"),
            (168, BUILDING_COLOURS[BuildingType.SLOW], "burns slowly, often"),
            (336, COMPLETE, "complete"),
            (424, BURNED, "burned down"),
        ):
            self.swatch(MARGIN + 4 + x, top + 38, colour, meaning)

        self.swatch(MARGIN + 4, top + 64, HEALTH, "bar: health")
        self.swatch(MARGIN + 4 + 168, top + 64, TIMER, "pie: time to the next fire")
        self.swatch(MARGIN + 4 + 424, top + 64, FLAME, "fire")

    def link(self, start: Point, end: Point, colour: str) -> None:
        """The line from an agent to the building it is allocated to."""
        self.pen.line([self._centre(start), self._centre(end)], fill=colour + "70", width=4 * OVERSAMPLING)

    def agent(self, cell: Point, kind: AgentType) -> None:
        x, y = self._centre(cell)
        self.disc((x / OVERSAMPLING, y / OVERSAMPLING), 0.42 * CELL, AGENT_COLOURS[kind], kind.name[0], 15)

    def block(self, cell: Point, colour: str) -> None:
        self.pen.rounded_rectangle(self._box(cell, 0.46), 6 * OVERSAMPLING, fill=colour)

    def tick(self, cell: Point) -> None:
        self._strokes(cell, [(-0.22, -0.02), (-0.05, -0.2), (0.25, 0.2)])

    def cross(self, cell: Point) -> None:
        self._strokes(cell, [(-0.2, -0.2), (0.2, 0.2)])
        self._strokes(cell, [(-0.2, 0.2), (0.2, -0.2)])

    def _strokes(self, cell: Point, path: list[Point]) -> None:
        points = [self._centre((cell[0] + x, cell[1] + y)) for x, y in path]
        self.pen.line(points, fill="white", width=4 * OVERSAMPLING, joint="curve")

    def health_bar(self, cell: Point, health: float) -> None:
        """A bar in the lower part of the block; full means complete."""
        left, _, right, bottom = self._box(cell, 0.38)
        height = 6 * OVERSAMPLING
        self.pen.rectangle((left, bottom - height, right, bottom), fill="#ffffffc0")
        self.pen.rectangle((left, bottom - height, left + (right - left) * health, bottom), fill=HEALTH)

    def clock(self, cell: Point, fraction: float) -> None:
        """The time to the next fire: a pie in the upper right corner that runs empty."""
        box = self._box((cell[0] + 0.24, cell[1] + 0.22), 0.15)
        self.pen.ellipse(box, fill="#ffffffc0")
        self.pen.pieslice(box, -90 - 360 * fraction, -90, fill=TIMER)

    def flame(self, cell: Point, strength: float) -> None:
        """A flame whose size is the strength of the fire."""
        for scale, colour in ((1.0, FLAME), (0.55, GLOW)):
            size = scale * (0.22 + 0.3 * strength)
            self.pen.polygon([self._centre(point) for point in _flame_outline(cell, size)], fill=colour)


def _flame_outline(cell: Point, size: float) -> list[Point]:
    """A drop with its tip up, standing in the left half of a building."""
    x, y = cell[0] - 0.12, cell[1] + 0.06
    outline = []
    for step in range(40):
        angle = 2 * math.pi * step / 40
        wide = math.sin(angle) * math.sin(angle / 2) ** 1.5
        outline.append((x + size * wide, y + size * math.cos(angle) * (1.25 if math.cos(angle) > 0 else 0.8)))
    return outline
