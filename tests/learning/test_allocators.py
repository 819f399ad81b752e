"""Exploration of allocations."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from views import random_view

from alma import NOBODY
from alma.learning.allocators import Exploration, wander

COUNT = 4000
VIEW = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (COUNT, *leaf.shape)), random_view())
CHOSEN = jnp.zeros((COUNT, 3), int)
PREVIOUS = jnp.ones((COUNT, 3), int)
NONE, ALL = jnp.zeros((COUNT, 3), bool), jnp.ones((COUNT, 3), bool)


def explore(subtask=0.0, persistence=0.0, wandering=NONE, view=VIEW, previous=PREVIOUS):
    exploration = Exploration(jnp.float32(0), jnp.float32(subtask), persistence, wandering)
    return map(np.asarray, wander(jax.random.key(0), CHOSEN, view, previous, exploration))


def share(rows):
    return np.asarray(rows).mean()


def test_without_exploration_the_choice_stands():
    allocation, wandering = explore()
    assert (allocation == 0).all()
    assert not wandering.any()


def test_random_subtasks_are_uniform_over_the_active_ones():
    view = replace(VIEW, active=VIEW.active.at[:, 2].set(False))
    allocation, wandering = explore(subtask=1.0, view=view)
    assert wandering.all()
    assert set(np.unique(allocation)) == {0, 1}
    assert abs(share(allocation == 1) - 0.5) < 0.02


def test_agents_are_sent_as_often_as_asked():
    _, wandering = explore(subtask=0.2)
    assert abs(share(wandering) - 0.2) < 0.02


def test_wanderers_are_left_where_they_are():
    allocation, wandering = explore(persistence=0.75, wandering=ALL)
    assert abs(share(wandering) - 0.75) < 0.02
    assert ((allocation == 1) == wandering).all(), "those that are called back do as chosen"


def test_nobody_stays_in_a_finished_subtask():
    view = replace(VIEW, active=VIEW.active.at[:, 1].set(False))
    allocation, wandering = explore(persistence=0.99, wandering=ALL, view=view)
    assert (allocation == 0).all()
    assert not wandering.any()


def test_absent_agents_are_sent_nowhere():
    view = replace(VIEW, present=VIEW.present.at[:, 1].set(False))
    allocation, _ = explore(subtask=1.0, view=view, previous=PREVIOUS.at[:, 1].set(NOBODY))
    assert (allocation[:, 1] == NOBODY).all()
