"""Exploration of allocations, and how many of them are considered."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from views import AGENTS, SPEC, random_view

from alma import NOBODY
from alma.learning.allocators import LearnedAllocator, wander
from alma.presets import AllocatorNetworkOptions, AllocatorOptions
from alma.rollout import Situation

COUNT = 4000
VIEW = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (COUNT, *leaf.shape)), random_view())
CHOSEN = jnp.zeros((COUNT, 3), int)


def explore(chance, view=VIEW):
    return np.asarray(wander(jax.random.key(0), CHOSEN, view, jnp.float32(chance)))


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


def test_more_allocations_are_considered_in_play():
    options = AllocatorOptions(proposals=2, variations=1, networks=AllocatorNetworkOptions(width=8, choice_width=8))
    few, many = (LearnedAllocator(SPEC, replace(options, play_candidates=times)) for times in (1, 20))
    view, nobody = random_view(), jnp.full(AGENTS, NOBODY)
    params = few.init(jax.random.key(0), jax.tree.map(lambda leaf: leaf[None], view), nobody[None]).params
    situation = Situation(None, view, nobody, nobody)

    def taken_by(allocator, key):
        """The value of what is taken, and that of everything considered."""
        taken = allocator.greedy(params, key, situation)
        values = allocator.weigh(params, key, situation, taken).values
        return values[0], values[1:]

    keys = jax.random.split(jax.random.key(1), 50)
    (few_taken, few_values), (many_taken, many_values) = (
        jax.vmap(lambda key, allocator=allocator: taken_by(allocator, key))(keys) for allocator in (few, many)
    )
    assert (few_values.shape[1], many_values.shape[1]) == (3, 60)
    np.testing.assert_allclose(many_taken, many_values.max(axis=1), rtol=1e-5)
    assert many_taken.mean() > few_taken.mean(), "the best of more is better"
