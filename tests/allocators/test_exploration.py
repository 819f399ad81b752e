"""The paper's exploration of allocations: random subtasks for single agents."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from helpers.views import random_view

from alma import NOBODY
from alma.allocators.exploration import explore_subtasks

COUNT = 4000
VIEW = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (COUNT, *leaf.shape)), random_view())
CHOSEN = jnp.zeros((COUNT, 3), int)


def explore(chance, view=VIEW):
    return np.asarray(explore_subtasks(jax.random.key(0), CHOSEN, view, jnp.float32(chance)))


def test_without_exploration_the_choice_stands():
    assert (explore(0.0) == 0).all()


def test_random_subtasks_are_uniform_over_the_active_ones():
    allocation = explore(1.0, replace(VIEW, active=VIEW.active.at[:, 2].set(False)))
    assert set(np.unique(allocation)) == {0, 1}
    assert abs((allocation == 1).mean() - 0.5) < 0.02


def test_agents_are_sent_as_often_as_asked():
    assert abs((explore(0.3) != 0).mean() - 0.2) < 0.02, "a third of them end up where they were"


def test_absent_agents_are_sent_nowhere():
    allocation = explore(1.0, replace(VIEW, present=VIEW.present.at[:, 1].set(False)))
    assert (allocation[:, 1] == NOBODY).all()
