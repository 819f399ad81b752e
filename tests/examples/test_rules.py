"""Rules that allocate by distance: hand-computed cases."""

import jax
import numpy as np
import pytest

import alma
from examples.rules import closest_first, nearest, together


def view_of(distances, active=None, present=None):
    """A view of agents and one entity for each subtask; the second relation is the distance."""
    distances = np.asarray(distances, np.float32)
    agents, subtasks = distances.shape
    active = np.ones(subtasks, bool) if active is None else np.asarray(active)
    present = np.ones(agents, bool) if present is None else np.asarray(present)
    there = np.concatenate([present, active])
    relations = np.zeros((agents, agents + subtasks, 2), np.float32)
    relations[:, agents:, 1] = distances
    return alma.View(
        entities=np.zeros((agents + subtasks, 1), np.float32),
        present=there,
        visible=present[:, None] & there,
        subtask=np.concatenate([np.full(agents, alma.NOBODY), np.where(active, np.arange(subtasks), alma.NOBODY)]),
        active=active,
        available=np.broadcast_to(present[:, None], (agents, 2)),
        target=np.full((agents, 2), -1),
        relations=relations * present[:, None, None],
    )


CASES = [
    # Both are nearest to subtask 0; the closer one has it, and the other one takes what is left.
    (nearest, [[1, 3], [2, 9]], {}, [0, 0]),
    (closest_first, [[1, 3], [2, 9]], {}, [0, 1]),
    (closest_first, [[2, 3], [1, 9]], {}, [1, 0]),
    # Once every subtask is taken, agents go to the nearest one.
    (closest_first, [[1, 5], [2, 5], [9, 8]], {}, [0, 1, 1]),
    (closest_first, [[1, 5], [2, 5], [9, 8]], {"active": [True, False]}, [0, 0, 0]),
    # The team goes where the ways are shortest in all: 3 + 3 against 1 + 9.
    (together, [[1, 3], [9, 3]], {}, [1, 1]),
    (together, [[1, 3], [9, 3]], {"present": [True, False]}, [0, alma.NOBODY]),
    # Nobody is sent to what is over, and those who are absent are sent nowhere.
    (nearest, [[1, 3], [1, 3]], {"active": [False, True]}, [1, 1]),
    (nearest, [[1, 3], [1, 3]], {"active": [False, False]}, [alma.NOBODY] * 2),
    (together, [[1, 3], [1, 3]], {"active": [False, False]}, [alma.NOBODY] * 2),
    (closest_first, [[1, 3], [1, 3]], {"active": [False, False]}, [alma.NOBODY] * 2),
    (closest_first, [[1, 3], [2, 3]], {"present": [False, True]}, [alma.NOBODY, 0]),
]


@pytest.mark.parametrize(("rule", "distances", "others", "expected"), CASES)
def test_rules(rule, distances, others, expected):
    view = view_of(distances, **others)
    assert jax.jit(rule, static_argnums=1)(view, 1).tolist() == expected
