import numpy as np
import pytest
from helpers.recordings import LENGTH, Digging, side

from alma.viewer import colours
from alma.viewer.picture import INK, PLAYHEAD, WIDTH, Panel, draw_frames


@pytest.fixture(scope="module")
def panel():
    return Panel(Digging(), side())


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def where(picture, colour):
    """Pixels of about a colour, (y, x); edges are smoothed."""
    pixels = np.asarray(picture, int)
    return np.argwhere(np.abs(pixels - rgb(colour)).max(axis=-1) < 30)


def test_there_is_a_frame_for_every_moment():
    frames = draw_frames(Digging(), [side()])
    assert len(frames) == LENGTH + 1
    assert frames[0].width == WIDTH


def test_sides_stand_beside_each_other():
    one, two = draw_frames(Digging(), [side()])[0], draw_frames(Digging(), [side(), side("other")])[0]
    assert two.size == (2 * one.width, one.height)
    left, right = two.crop((0, 0, one.width, one.height)), two.crop((one.width, 0, 2 * one.width, one.height))
    assert left.tobytes() == right.tobytes() == one.tobytes()


def test_agents_take_the_colour_of_their_subtask_and_move(panel):
    """Agent 1 is sent from hole 0 to hole 1 at step 5, and everybody walks to the east."""
    scale = (WIDTH - 28) / 10
    for step, subtask in ((0, 0), (6, 1)):
        picture = panel.draw(step, LENGTH)
        x, y = 14 + (1.0 + step / 4) * scale, 40 + (8 - 4.0) * scale
        assert picture.getpixel((round(x - 0.2 * scale), round(y + 0.2 * scale))) == rgb(colours.SUBTASKS[subtask])


def test_the_dead_are_gone(panel):
    alive, dead = (len(where(panel.draw(step, LENGTH), colours.BARS["health"])) for step in (7, 9))
    assert alive > dead


def test_the_playhead_moves_along_the_timeline(panel):
    columns = [where(panel.draw(step, LENGTH), PLAYHEAD)[:, 1].mean() for step in (0, 6, 12)]
    assert columns[0] < columns[1] < columns[2]
    assert columns[1] == pytest.approx((columns[0] + columns[2]) / 2, abs=1)


def test_a_shorter_axis_spreads_the_timeline(panel):
    assert where(panel.draw(12, 12), PLAYHEAD)[:, 1].mean() > where(panel.draw(12, 24), PLAYHEAD)[:, 1].mean()


def test_fires_and_clocks_are_drawn(panel):
    picture = panel.draw(0, LENGTH)
    assert len(where(picture, colours.FLAME[1])) > 10
    assert len(where(picture, INK)) > 100
