"""How a learned allocator chooses in training and in play, and what it learns from."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import AGENTS, SPEC, random_view

from alma import NOBODY
from alma.allocators.allocator import AllocationExploration
from alma.allocators.learned import LearnedAllocator
from alma.allocators.options import AllocatorExplorationOptions, AllocatorNetworkOptions, AllocatorOptions
from alma.learning.learner import Clock
from alma.learning.replay import Decision, add_decisions, empty_decisions
from alma.play.situation import Situation

COUNT = 4000
VIEW = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (COUNT, *leaf.shape)), random_view())


NETWORKS = AllocatorNetworkOptions(width=8, choice_width=8)


def test_sometimes_the_first_proposal_is_taken_instead_of_the_best():
    """With few proposals of an untrained network the first one is the best one as often as any other."""
    allocator = LearnedAllocator(SPEC, AllocatorOptions(proposals=8, variations=0, networks=NETWORKS))
    view = jax.tree.map(lambda leaf: leaf[:400], VIEW)
    nobody = jnp.full((400, AGENTS), NOBODY)
    params = allocator.init(jax.random.key(0), view, nobody).params
    encoded = allocator.networks.encode(params, view, nobody)

    def worth(chance):
        exploration = AllocationExploration(jnp.float32(chance), jnp.float32(0))
        situations = Situation(None, view, nobody, nobody)
        chosen = allocator.allocate(params, jax.random.key(2), situations, jnp.ones(400, bool), exploration)
        return np.asarray(allocator.networks.values(params, encoded, chosen[:, None])[:, 0])

    best, first, half = worth(0.0), worth(1.0), worth(0.5)
    assert (best >= first).all()
    assert (best > first).mean() > 0.6, "the best of eight is seldom the first"
    lost = (half < best).sum() / (first < best).sum()
    assert abs(lost - 0.5) < 0.1, "half of them"
    assert ((half == best) | (half == first)).all()


def decisions_with(reward):
    """A buffer of four decisions after which episodes ended, and the view and allocation that they were made in."""
    view = jax.tree.map(lambda leaf: leaf[:4], VIEW)
    nobody = jnp.full((4, AGENTS), NOBODY)
    decision = Decision(
        state=view,
        previous=nobody,
        allocation=jnp.zeros((4, AGENTS), int),
        reward=jnp.full(4, reward),
        next_state=view,
        terminated=jnp.ones(4, bool),
        made_at=jnp.arange(4),
    )
    return add_decisions(empty_decisions(decision, 2), decision, jnp.ones(4, bool)), view, nobody


def updated(options, reward):
    """The state of an allocator before and after an update, and the metrics of the update."""
    decisions, view, nobody = decisions_with(reward)
    allocator = LearnedAllocator(SPEC, options)
    level = allocator.init(jax.random.key(0), view, nobody)
    clock = Clock(jnp.int32(4), jnp.int32(0), jnp.float32(0))
    return level, *allocator.update(level, jax.random.key(1), decisions, lambda view: view, clock)


def test_rewards_are_those_of_a_step():
    """Added up over the steps between decisions, they are divided by as many: what is learned stays on one scale."""

    def loss(period, times):
        options = AllocatorOptions(proposals=2, variations=1, batch=8, period=period, networks=NETWORKS)
        return float(updated(options, 3.0 * times)[2]["critic_loss"])

    assert loss(period=5, times=5) == pytest.approx(loss(period=1, times=1), rel=1e-5)
    assert loss(period=5, times=1) < 0.5 * loss(period=1, times=1)


def test_critics_that_explore_learn_besides_the_others():
    """They change nothing in what the other networks learn."""

    def learned(kind):
        exploration = AllocatorExplorationOptions(kind, critics=3)
        options = AllocatorOptions(proposals=2, variations=1, batch=8, networks=NETWORKS, exploration=exploration)
        return updated(options, 3.0)

    (_, usual, usual_metrics), (before, after, metrics) = learned("epsilon"), learned("thompson")
    assert set(metrics) == {*usual_metrics, "critics_loss", "critics_spread"}
    moved = jax.tree.map(lambda old, new: bool(jnp.any(old != new)), before.params["critics"], after.params["critics"])
    assert all(jax.tree.leaves(moved))
    others = {name: leaf for name, leaf in after.params.items() if name != "critics"}
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), others, usual.params)


def test_more_allocations_are_considered_in_play():
    options = AllocatorOptions(proposals=2, variations=1, networks=NETWORKS)
    few, many = (LearnedAllocator(SPEC, replace(options, play_candidates=times)) for times in (1, 20))
    view, nobody = random_view(), jnp.full(AGENTS, NOBODY)
    params = few.init(jax.random.key(0), jax.tree.map(lambda leaf: leaf[None], view), nobody[None]).params
    situation = Situation(None, view, nobody, nobody)

    def taken_by(allocator, key):
        """The value of what is taken, and that of everything considered."""
        taken = allocator.greedy(params, key, situation)
        values = allocator.explain_allocation(params, key, situation, taken).values
        return values[0], values[1:]

    keys = jax.random.split(jax.random.key(1), 50)
    (few_taken, few_values), (many_taken, many_values) = (
        jax.vmap(lambda key, allocator=allocator: taken_by(allocator, key))(keys) for allocator in (few, many)
    )
    assert (few_values.shape[1], many_values.shape[1]) == (3, 60)
    np.testing.assert_allclose(many_taken, many_values.max(axis=1), rtol=1e-5)
    assert many_taken.mean() > few_taken.mean(), "the best of more is better"
