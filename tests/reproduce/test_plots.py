"""Pictures show what rows say."""

import numpy as np
import pytest
from helpers.example import FIGURE
from matplotlib import pyplot

from alma.reproduce.figures import FIGURES, Case
from alma.reproduce.plots import bars_of, draw, draw_curves, draw_sweep, styles_of
from alma.reproduce.rows import Row
from alma.reproduce.scores import CurvePoint
from alma.reproduce.statistics import Estimate


def row(label, at, value, panel="N_t"):
    return Row(panel, label, at, (0, 1), 1_000_000, 2.0, Estimate(value, value - 0.1, value + 0.1), 1.0, None)


SWEPT = [row("ALMA", 12.0, 0.6), row("ALMA", 1.0, 0.4), row("matching", None, 0.3)]


def test_sweeps_are_drawn_in_order_beside_what_does_not_depend_on_them():
    picture, axis = pyplot.subplots()
    draw_sweep(axis, FIGURES["robustness"], SWEPT)
    swept, line = axis.get_lines()[0], axis.get_lines()[-1]
    assert np.array_equal(swept.get_xydata(), [[1, 0.4], [12, 0.6]])
    assert (line.get_linestyle(), line.get_label(), set(line.get_ydata())) == ("--", "matching", {0.3})
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["1", "12"]
    pyplot.close(picture)


def curve(label, seed, *measured):
    """Evaluations of a run: step, minutes, success rate."""
    case = Case("a city", label, FIGURES["save-the-city"].arms[0])
    return [
        CurvePoint(case, seed, step, minutes, {"success_rate": rate, "mean_return": 0.0})
        for step, minutes, rate in measured
    ]


@pytest.mark.parametrize(
    ("over", "at", "name"), [("steps", [1, 2], "steps, millions"), ("minutes", [1.5, 3.0], "minutes")]
)
def test_curves_go_over_steps_or_over_the_minutes_they_took(over, at, name):
    """Two seeds, the second slower and not yet at the last step."""
    points = curve("ALMA", 0, (1_000_000, 1.5, 0.2), (2_000_000, 3.0, 0.5), (3_000_000, 4.5, 0.9))
    points += curve("ALMA", 1, (1_000_000, 2.5, 0.4), (2_000_000, 7.0, 0.7))
    picture, axis = pyplot.subplots()
    draw_curves(axis, points, "success_rate", over, styles_of(["ALMA"]))
    assert np.allclose(axis.get_lines()[0].get_xydata(), np.transpose([at, [0.3, 0.6]]))
    assert name in axis.get_xlabel()
    pyplot.close(picture)


@pytest.mark.parametrize("name", ["robustness", "spread", "ablations"])
def test_every_kind_of_figure_is_drawn(name, tmp_path):
    rows = [row("fast", None, 0.5, "A"), row("other", None, 0.4, "A")] if name == "ablations" else SWEPT
    files = draw(FIGURES[name], rows, [], tmp_path)
    assert all(file.stat().st_size for file in files)


@pytest.mark.parametrize(
    ("name", "over"),
    [("save-the-city", "environment steps, millions"), ("save-the-city-minutes", "minutes of training, fastest seed")],
)
def test_figures_of_curves_show_both_measures_over_what_they_are_for(name, over, tmp_path):
    _, svg = draw(FIGURES[name], [row("ALMA", None, 0.5, "a city")], curve("ALMA", 0, (1_000_000, 1.5, 0.2)), tmp_path)
    words = svg.read_text()  # which has texts as comments
    assert words.count(f"<!-- {over} -->") == 2
    assert words.index("<!-- solved -->") < words.index("<!-- return -->")


def test_error_bars_reach_from_the_value_to_the_ends_of_the_interval():
    found = bars_of([Estimate(0.5, 0.4, 0.8), Estimate(0.3)])
    assert np.allclose(found, [[0.1, 0.0], [0.3, 0.0]])


def test_the_same_picture_gives_the_same_file(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        draw(FIGURE, [row("ALMA", None, 0.5)], [], folder)
    assert (first / "figure.svg").read_bytes() == (second / "figure.svg").read_bytes()


def test_methods_keep_their_colours_and_other_labels_get_those_that_are_left():
    styles = styles_of(["ALMA", "ours", "heuristic", "theirs"])
    assert styles["ALMA"] == styles_of(["flat", "ALMA"])["ALMA"]
    assert len({style["color"] for style in styles.values()}) == 4
    assert len({style["marker"] for style in styles.values()}) == 4


def test_more_labels_than_colours_can_be_drawn():
    assert len(styles_of(map(str, range(20)))) == 20
