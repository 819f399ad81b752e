"""Ways of robots that turn on the spot, on a map that is small enough to count."""

import numpy as np
import pytest

from examples.warehouse_ways import MOVES, Ways

UP, RIGHT, DOWN, LEFT = range(4)
MAP = np.array(
    [
        # a road around two racks side by side; the goal is in the lower left corner
        [1, 1, 1, 1],
        [1, 0, 0, 1],
        [1, 1, 1, 1],
    ],
    np.uint8,
)
WAYS = Ways.of(MAP.tobytes(), MAP.shape, ((0, 2),))  # goals are (column, row)
NOTHING_STANDS = np.zeros(MAP.shape, bool)


def errand(robot, heading, shelf, loaded=False, carries=False, standing=NOTHING_STANDS):
    errands = WAYS.errands(
        np.array([robot]), np.array([heading]), np.array([loaded]), np.array([[carries]]), np.array([shelf]), standing
    )
    return round(float(errands.steps[0, 0])), MOVES[errands.action[0, 0]]


# From the rack at (1, 1), heading up as shelves are reckoned: turn, forward to the road, turn, forward to the goal: 4
# steps; and 1 for lifting.
BRING = 5


@pytest.mark.parametrize(
    ("robot", "heading", "way", "first"),
    [
        ((1, 1), RIGHT, 0, "toggle load"),
        ((1, 0), RIGHT, 1, "forward"),
        ((1, 0), UP, 2, "right"),
        ((1, 0), DOWN, 2, "left"),
        ((1, 3), LEFT, 2, "forward"),  # below the other shelf
        ((0, 0), RIGHT, 3, "forward"),
    ],
)
def test_robots_without_a_load_take_the_shortest_way(robot, heading, way, first):
    assert errand(robot, heading, (1, 1)) == (way + BRING, first)


def test_loaded_robots_keep_to_the_road():
    """From the right rack to the goal: not through the left one, but around it."""
    assert errand((1, 2), LEFT, (1, 2), loaded=True, carries=True) == (5, "left")  # turn, down, turn, and twice on


def test_a_load_that_is_no_order_is_put_back_first():
    standing = ~NOTHING_STANDS
    standing[1, 2] = False  # the only empty place
    steps, first = errand((2, 2), UP, (1, 1), loaded=True, standing=standing)
    assert first == "forward"
    assert steps > 1 + 1 + 1 + BRING - 1  # into the rack, put it down, over to the shelf, and bring that
    assert errand((1, 2), UP, (1, 1), loaded=True, standing=standing)[1] == "toggle load"


def test_what_is_ahead():
    cells, inside = WAYS.ahead(np.array([(0, 0), (0, 0)]), np.array([UP, RIGHT]))
    assert inside.tolist() == [False, True]
    assert cells.tolist() == [[0, 0], [0, 1]]
