from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alma
from alma import NOBODY
from alma.allocators.rules import allocate_nobody, allocator_by_name, heuristic, uniform
from alma.play.situation import Situation
from alma.tasks.save_the_city import SaveTheCity

TASK = alma.make("save-the-city")
STATE = jax.jit(TASK.reset)(jax.random.key(3))
VIEW = jax.jit(TASK.view)(STATE)
BEFORE = jnp.full(5, NOBODY)
SITUATION = Situation(STATE, VIEW, BEFORE, BEFORE)


def test_uniform_covers_the_active_subtasks_and_leaves_the_absent_alone():
    allocate = jax.jit(jax.vmap(lambda key: uniform(None, key, SITUATION)))
    draws = np.asarray(allocate(jax.random.split(jax.random.key(0), 2000)))
    present = np.asarray(VIEW.present[:5])
    assert (draws[:, ~present] == NOBODY).all()
    for agent in np.flatnonzero(present):
        assert set(draws[:, agent]) == set(np.flatnonzero(VIEW.active))


@pytest.mark.parametrize("name", ["heuristic", "heuristic:nearest-useful"])
def test_the_first_heuristic_is_the_default(name):
    allocation = allocator_by_name(TASK, name).greedy(None, jax.random.key(0), SITUATION)
    assert allocation.tolist() == TASK.heuristics["nearest-useful"](STATE).tolist()


def test_a_fixed_allocation_holds_while_subtasks_are_active():
    allocate = allocator_by_name(TASK, "fixed:0,1,2,0,1")
    view = replace(VIEW, present=VIEW.present.at[:5].set(jnp.asarray([True, True, True, True, False])))
    active = jnp.zeros_like(VIEW.active).at[jnp.asarray([0, 2])].set(True)
    allocation = allocate.greedy(None, jax.random.key(0), SITUATION._replace(view=replace(view, active=active)))
    assert allocation.tolist() == [0, NOBODY, 2, 0, NOBODY]


def test_nobody():
    assert (
        allocate_nobody(None, jax.random.key(0), SITUATION._replace(allocation=jnp.arange(5))).tolist() == [NOBODY] * 5
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("heuristic:best", "no heuristic 'best': choose from nearest-useful, most-urgent"),
        ("fixed", "a subtask from 0 to 5 for each of 5 agents, as in fixed:0,1,2,3,4, not ''"),
        ("fixed:0,1", "not '0,1'"),
        ("fixed:0,1,2,3,9", "not '0,1,2,3,9'"),
        ("greedy", "unknown allocator 'greedy': choose from random, heuristic, heuristic:nearest-useful"),
    ],
)
def test_unknown_allocators_are_answered_with_the_valid_ones(name, message):
    with pytest.raises(ValueError, match=message):
        allocator_by_name(TASK, name)


def test_a_task_without_heuristics_says_so():
    class Plain(SaveTheCity):
        heuristics = {}  # noqa: RUF012

    with pytest.raises(ValueError, match="has no heuristic allocation"):
        heuristic(Plain())
