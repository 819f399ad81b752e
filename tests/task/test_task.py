import jax.numpy as jnp
import pytest

from alma import NOBODY, TaskSpec, View
from alma.task.view import available_under, subtask_of_entities, team_size


def view_of_healers():
    """Agents 0 and 1 can heal each other, strike enemy 2 (subtask 0) or enemy 3 (subtask 1), or wait."""
    return View(
        entities=jnp.zeros((4, 1)),
        present=jnp.ones(4, bool),
        visible=jnp.ones((2, 4), bool),
        subtask=jnp.asarray([NOBODY, NOBODY, 0, 1]),
        active=jnp.ones(2, bool),
        available=jnp.asarray([[True, True, True, True], [True, True, False, True]]),
        target=jnp.asarray([[-1, 1, 2, 3], [-1, 0, 2, 3]]),
        relations=jnp.zeros((2, 4, 1)),
    )


def test_agents_belong_where_they_are_allocated():
    assert subtask_of_entities(view_of_healers(), jnp.asarray([1, NOBODY])).tolist() == [1, NOBODY, 0, 1]


@pytest.mark.parametrize(
    ("allocation", "expected"),
    [
        ([0, 0], [[True, True, True, False], [True, True, False, False]]),
        ([0, 1], [[True, False, True, False], [True, False, False, True]]),
        ([NOBODY, 1], [[True, False, False, False], [True, False, False, True]]),
    ],
)
def test_only_targets_of_the_own_subtask_remain(allocation, expected):
    assert available_under(view_of_healers(), jnp.asarray(allocation)).tolist() == expected


def test_team_size_counts_present_agents():
    assert int(team_size(view_of_healers(), 2)) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": 0}, "agents"),
        ({"max_steps": 10**12}, "max_steps must lie between 1 and 2147483647"),
        ({"entities": 1}, "cannot be smaller"),
        ({"actions": ()}, "at least one"),
        ({"places": ("f", "g")}, "places must be names of features; g"),
    ],
)
def test_impossible_specs_are_refused(changes, message):
    sizes = {"agents": 2, "entities": 3, "subtasks": 1, "max_steps": 5}
    names = {"actions": ("a",), "features": ("f",), "relations": ()}
    with pytest.raises(ValueError, match=message):
        TaskSpec(**{"name": "x", "mask_subtask_actions": False, **sizes, **names, **changes})
