"""A canvas with the drawing primitives for pictures."""

import math
from collections.abc import Sequence
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from alma.task.scene import Point, Shape

OVERSAMPLING = 2
"""Pictures are drawn larger by this factor and scaled down, for smooth edges."""
PAPER, INK, FAINT = "#fbfaf7", "#2b2d33", "#8a8780"


class Canvas:
    """A picture to draw on. Coordinates are pixels of the finished picture; y points down."""

    def __init__(self, width: float, height: float) -> None:
        self.size = (round(width), round(height))
        self.image = Image.new("RGB", (self.size[0] * OVERSAMPLING, self.size[1] * OVERSAMPLING), PAPER)
        self.pen = ImageDraw.Draw(self.image, "RGBA")

    def finish(self) -> Image.Image:
        return self.image.resize(self.size, Image.Resampling.LANCZOS)

    def text(self, at: Point, text: str, size: int, colour: str, anchor: str = "lm") -> None:
        self.pen.text(_scaled([at])[0], text, fill=colour, font=_font(size), anchor=anchor)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        self.pen.line(_scaled(points), fill=colour, width=round(width * OVERSAMPLING), joint="curve")

    def fill(self, points: Sequence[Point], colour: str) -> None:
        self.pen.polygon(_scaled(points), fill=colour)

    def shape(self, shape: Shape, at: Point, radius: float, fill: str, edge: str = "white", width: float = 2) -> None:
        """A shape centred at a point."""
        if corners := CORNERS.get(shape):
            points = _scaled([(at[0] + radius * x, at[1] + radius * y) for x, y in corners])
            self.pen.polygon(points, fill=fill)
            # PIL draws a polygon's outline inwards and leaves gaps at its corners.
            self.pen.line([*points, *points[:2]], fill=edge, width=round(width * OVERSAMPLING), joint="curve")
        else:
            self.pen.ellipse(_box(at, radius), fill=fill, outline=edge, width=round(width * OVERSAMPLING))

    def circle(self, at: Point, radius: float, fill: str, edge: str) -> None:
        self.pen.ellipse(_box(at, radius), fill=fill, outline=edge, width=OVERSAMPLING)

    def pie(self, at: Point, radius: float, share: float, colour: str) -> None:
        """A pie chart of a share from 0 to 1, which empties clockwise."""
        self.circle(at, radius, "white", colour)
        self.pen.pieslice(_box(at, radius), -90 - 360 * share, -90, fill=colour)

    def block(self, corner: Point, width: float, height: float, colour: str, rounding: float = 0) -> None:
        """A rectangle with its upper left corner at a point."""
        box = [*_scaled([corner])[0], *_scaled([(corner[0] + width, corner[1] + height)])[0]]
        self.pen.rounded_rectangle(box, rounding * OVERSAMPLING, fill=colour)


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in points]


def _box(at: Point, radius: float) -> tuple[float, float, float, float]:
    (x, y), r = _scaled([at])[0], radius * OVERSAMPLING
    return x - r, y - r, x + r, y + r


def _around(corners: int, radius: float = 1, down: float = 0) -> list[Point]:
    angles = [2 * math.pi * i / corners for i in range(corners)]
    return [(radius * math.sin(angle), down - radius * math.cos(angle)) for angle in angles]


CORNERS: dict[Shape, list[Point]] = {
    "square": [(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)],
    "triangle": _around(3, 1.2, 0.12),
    "diamond": _around(4, 1.15),
    "hexagon": _around(6),
}
"""Corners of polygons of radius 1; shapes not listed are discs."""


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size * OVERSAMPLING)
