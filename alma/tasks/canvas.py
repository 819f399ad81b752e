"""What pictures of all tasks are drawn with."""

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

OVERSAMPLING = 2
"""Pictures are drawn larger and scaled down, which smooths their edges."""
PAPER, INK, FAINT = "#fbfaf7", "#2b2d33", "#8a8780"

Point = tuple[float, float]


class Canvas:
    """A sheet to draw on, in pixels of the finished picture."""

    def __init__(self, width: float, height: float) -> None:
        self.size = (round(width), round(height))
        self.image = Image.new("RGB", (self.size[0] * OVERSAMPLING, self.size[1] * OVERSAMPLING), PAPER)
        self.pen = ImageDraw.Draw(self.image, "RGBA")

    def finish(self) -> Image.Image:
        return self.image.resize(self.size, Image.Resampling.LANCZOS)

    def text(self, at: Point, text: str, size: int, colour: str, anchor: str = "lm") -> None:
        where = (at[0] * OVERSAMPLING, at[1] * OVERSAMPLING)
        self.pen.text(where, text, fill=colour, font=_font(size), anchor=anchor)

    def disc(self, at: Point, radius: float, colour: str, letter: str = "", size: int = 10) -> None:
        x, y, r = at[0] * OVERSAMPLING, at[1] * OVERSAMPLING, radius * OVERSAMPLING
        self.pen.ellipse((x - r, y - r, x + r, y + r), fill=colour, outline="white", width=2 * OVERSAMPLING)
        self.text(at, letter, size, "white", "mm")

    def ring(self, at: Point, radius: float, colour: str, width: float = 2) -> None:
        x, y, r = at[0] * OVERSAMPLING, at[1] * OVERSAMPLING, radius * OVERSAMPLING
        self.pen.ellipse((x - r, y - r, x + r, y + r), outline=colour, width=round(width * OVERSAMPLING))

    def line(self, start: Point, end: Point, colour: str, width: float) -> None:
        ends = [(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in (start, end)]
        self.pen.line(ends, fill=colour, width=round(width * OVERSAMPLING))

    def bar(self, at: Point, width: float, height: float, share: float, colour: str) -> None:
        """A bar with its left upper corner at a point, filled in part."""
        left, top = at[0] * OVERSAMPLING, at[1] * OVERSAMPLING
        right, bottom = left + width * OVERSAMPLING, top + height * OVERSAMPLING
        self.pen.rectangle((left, top, right, bottom), fill="#ffffffc0")
        self.pen.rectangle((left, top, left + (right - left) * share, bottom), fill=colour)

    def swatch(self, x: float, y: float, colour: str, meaning: str) -> None:
        """A patch of colour and what it means."""
        box = [(x - 3) * OVERSAMPLING, (y - 6) * OVERSAMPLING, (x + 9) * OVERSAMPLING, (y + 6) * OVERSAMPLING]
        self.pen.rounded_rectangle(box, 3 * OVERSAMPLING, fill=colour)
        self.text((x + 14, y), meaning, 13, FAINT)


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size * OVERSAMPLING)
