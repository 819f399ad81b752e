"""The colours that mean something, on pages and in pictures. Whatever a colour says is said by a number or a shape too.

Those of ground, grid and text are in `web/style.css` for pages, and in `canvas.py` and `picture.py` for pictures.
"""

from typing import Any

from alma.task.scene import Stroke
from alma.task.view import NOBODY

SUBTASKS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Colours of subtasks; people with any kind of colour vision can tell them apart (Okabe and Ito)."""

NO_SUBTASK = "#8a8f98"

BARS = {"health": "#2f9e55", "shield": "#4aa8e0", "energy": "#a06cd5"}
"""Bars of entities by name; others are not drawn."""

LINES: dict[Stroke, str] = {"attack": "#e8401c", "help": "#12a37a"}

FLAME = ("#e8401c", "#ffd24d")
"""The outer and the inner part of a flame."""


def colour_of(subtask: int) -> str:
    """The colour of a subtask; when there are more subtasks than colours, numbers tell them apart."""
    return NO_SUBTASK if subtask == NOBODY else SUBTASKS[subtask % len(SUBTASKS)]


def ink_on(colour: str) -> str:
    """Black or white, whichever is readable on a colour."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#111111" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"


def colour_data() -> dict[str, Any]:
    """The colours as JSON data, for the page."""
    return {"subtasks": SUBTASKS, "noSubtask": NO_SUBTASK, "bars": BARS, "lines": LINES, "flame": FLAME}
