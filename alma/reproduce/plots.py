"""Plots of figures with matplotlib, all in one style."""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from alma.reproduce.figures import Figure
from alma.reproduce.rows import Row
from alma.reproduce.scores import CurvePoint
from alma.reproduce.statistics import Estimate, mean

COLOURS = {
    "ALMA": "#0072b2",
    "ALMA, no mask": "#56b4e9",
    "heuristic": "#d55e00",
    "matching": "#d55e00",
    "dynamic": "#e69f00",
    "random allocation": "#999999",
    "flat": "#009e73",
    "COPA": "#cc79a7",
}
"""Colours of methods, the same in every figure and safe for colour-blind people; each also has a marker."""
MARKERS = dict(zip(COLOURS, "oPsvDx^*", strict=True))
OTHER = "#0072b2"


STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 130,
    "svg.hashsalt": "alma",  # the same picture gives the same file
}


def check_plots() -> None:
    """Raise a ValueError if matplotlib is missing: called before anything is trained."""
    if find_spec("matplotlib") is None:
        raise ValueError("plots need matplotlib: pip install 'alma-marl[plots]', or give --no-plots")


def styles_of(labels: Iterable[str]) -> dict[str, dict[str, str]]:
    """Colour and marker of each label: those of a known method, and for other labels what is free, in order."""
    labels = list(dict.fromkeys(labels))
    taken = {COLOURS[label] for label in labels if label in COLOURS}
    once = {colour: name for name, colour in COLOURS.items()}
    free = itertools.cycle([name for colour, name in once.items() if colour not in taken] or list(COLOURS))
    names = {label: label if label in COLOURS else next(free) for label in labels}
    return {label: {"color": COLOURS[name], "marker": MARKERS[name]} for label, name in names.items()}


def picture_files(folder: Path) -> list[Path]:
    """The files of the plots of a figure."""
    return [folder / "figure.png", folder / "figure.svg"]


def draw(figure: Figure, rows: list[Row], curves: list[CurvePoint], folder: Path) -> list[Path]:
    """Plot a figure as PNG and SVG; returns the files."""
    panels = list(dict.fromkeys(row.panel for row in rows))
    wide = 2 if figure.kind == "curves" or len(panels) > 1 else 1
    count = len(panels) * (2 if figure.kind == "curves" else 1)
    height = max(3.0, 0.32 * len(rows)) if figure.kind == "bars" else 3.0
    styles = styles_of(row.label for row in rows)
    with _canvas(figure.title, count, wide, height) as (picture, axes):
        for number, panel in enumerate(panels):
            here = [row for row in rows if row.panel == panel]
            title = "" if panels == [figure.title] else panel
            if figure.kind == "curves":
                points = [point for point in curves if point.case.panel == panel]
                pair = axes[2 * number : 2 * number + 2]
                for axis, (measure, name) in zip(pair, MEASURES.items(), strict=True):
                    draw_curves(axis, points, measure, figure.over, styles)
                    axis.set(title=title, ylabel=name)
                pair[0].set_ylim(-0.02, 1.02)
            elif figure.kind == "sweep":
                draw_sweep(axes[number], figure, here)
                axes[number].set(title=title, xlabel=figure.axis or panel)
            else:
                draw_bars(axes[number], here)
                axes[number].set_title(title)
        add_legend(picture, axes)
        for file in picture_files(folder):
            picture.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
        return picture_files(folder)


def add_legend(picture: Any, axes: list[Any]) -> None:
    """Add one legend for all axes, outside of them; bars have labels and need none."""
    lines = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if lines:
        picture.legend(list(lines.values()), list(lines), loc="outside right upper", fontsize=8)


@contextmanager
def _canvas(title: str, count: int, columns: int, height: float) -> Iterator[tuple[Any, list[Any]]]:
    """Context manager for a matplotlib figure with `count` axes in `columns` columns."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = -(-count // columns)
    with matplotlib.rc_context(STYLE):
        picture, axes = pyplot.subplots(rows, columns, figsize=(4.6 * columns + 1, height * rows), squeeze=False)
        picture.suptitle(title)
        for spare in axes.flat[count:]:
            spare.set_visible(False)
        try:
            yield picture, list(axes.flat)
        finally:
            pyplot.close(picture)


MEASURES = {"success_rate": "solved", "mean_return": "return"}
"""The metrics that learning curves show, with the labels of their axes."""


def draw_curves(
    axis: Any,
    points: list[CurvePoint],
    measure: str,
    over: Literal["steps", "minutes"],
    styles: dict[str, dict[str, str]],
) -> None:
    """Plot learning curves, means over seeds with intervals, over environment steps or minutes of training."""
    for label, style in styles.items():
        mine = [point for point in points if point.case.label == label]
        if not mine:
            continue
        found = curve_of(mine, measure)
        at = np.array([step / 1e6 for step in found] if over == "steps" else minutes_at(mine, list(found)))
        values = np.array([estimate.value for estimate in found.values()])
        down, up = bars_of(list(found.values()))
        axis.plot(at, values, markevery=max(1, len(at) // 8), markersize=4, label=label, **style)
        axis.fill_between(at, values - down, values + up, color=style["color"], alpha=0.15, linewidth=0)
    axis.set_xlabel("environment steps, millions" if over == "steps" else "minutes of training, fastest seed")


def curve_of(points: list[CurvePoint], measure: str) -> dict[int, Estimate]:
    """The mean over seeds at each step that all seeds have reached."""
    steps: dict[int, list[float]] = {}
    for point in points:
        steps.setdefault(point.step, []).append(point.summary[measure])
    seeds = len({point.seed for point in points})
    return {step: mean(np.array(found)) for step, found in sorted(steps.items()) if len(found) == seeds}


def minutes_at(points: list[CurvePoint], steps: list[int]) -> list[float]:
    """Minutes of training of the fastest seed at each step: other seeds may have shared the machine."""
    return [min(point.minutes for point in points if point.step == step) for step in steps]


def draw_sweep(axis: Any, figure: Figure, rows: list[Row]) -> None:
    """Plot final scores over the values of a sweep; runs that are not part of the sweep are dashed lines."""
    for label in dict.fromkeys(row.label for row in rows):
        mine = [row for row in rows if row.label == label]
        style = {"color": COLOURS.get(label, OTHER), "label": label}
        points = sorted((row.at, row.solved) for row in mine if row.at is not None)
        if not points:
            axis.axhline(mine[0].solved.value, linestyle="--", linewidth=1, **style)
            continue
        at, found = zip(*points, strict=True)
        values = [estimate.value for estimate in found]
        axis.errorbar(at, values, yerr=bars_of(list(found)), marker=MARKERS.get(label, "o"), capsize=3, **style)
    if figure.logarithmic:
        axis.set_xscale("log")
    ticks = sorted({row.at for row in rows if row.at is not None})
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_ylabel("solved")
    axis.set_ylim(bottom=0)


def draw_bars(axis: Any, rows: list[Row]) -> None:
    """Plot one bar per label, the first on top."""
    found = [row.solved for row in rows]
    values, labels = [estimate.value for estimate in found], [row.label for row in rows]
    axis.barh(labels, values, xerr=bars_of(found), color=OTHER, alpha=0.8, capsize=3)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("solved")


def bars_of(estimates: list[Estimate]) -> np.ndarray:
    """Lengths of error bars, down and up; 0 where there is no interval."""
    low = [0.0 if e.low is None else e.value - e.low for e in estimates]
    high = [0.0 if e.high is None else e.high - e.value for e in estimates]
    return np.maximum([low, high], 0)
