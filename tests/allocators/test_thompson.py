"""Exploration by critics that each decide in some of the environments."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from helpers.views import AGENTS, FEATURES, random_view

from alma import NOBODY
from alma.allocators.allocator import AllocationExploration
from alma.allocators.aql import AllocatorBatch, CandidateCounts
from alma.allocators.networks import PairNetworks
from alma.allocators.thompson import CRITICS, ThompsonSampling, learned_from, values_by_critics
from alma.nn.popart import Plain
from alma.play.situation import Situation

NETWORKS = PairNetworks(Plain(), 8, 8, things=2, features=tuple(range(FEATURES)))
EXPLORER = ThompsonSampling(3)
EVERY = jnp.asarray(list(itertools.product(range(3), repeat=AGENTS)))


def views(count):
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), random_view())


def initial(count):
    nobody = jnp.full((count, AGENTS), NOBODY)
    params = NETWORKS.init(jax.random.key(0), views(count), nobody)
    return {**params, **EXPLORER.init(jax.random.key(1), NETWORKS, views(count), nobody)}, nobody


def test_every_environment_follows_its_critic():
    """With more candidates than there are allocations, the best under that critic is nearly always among them."""
    count = 12
    params, nobody = initial(count)
    amounts = AllocationExploration(jnp.float32(1), jnp.float32(1))  # ignored
    situations, due = Situation(None, views(count), nobody, nobody), jnp.ones(count, bool)
    taken = EXPLORER.allocate(NETWORKS, params, jax.random.key(2), situations, due, CandidateCounts(400), amounts)
    encoded = NETWORKS.encode(params, views(count), nobody)
    every = jnp.broadcast_to(EVERY, (count, *EVERY.shape))
    values = np.asarray(values_by_critics(NETWORKS, params, encoded, every))
    best = np.asarray(EVERY)[values.argmax(axis=-1)]
    assert len({tuple(best[critic, 0]) for critic in range(3)}) > 1, "critics disagree before they have learned"
    assert np.array_equal(taken, best[np.arange(count) % 3, np.arange(count)])


def test_critics_learn_from_different_halves_of_the_decisions():
    learns = np.asarray(learned_from(jnp.arange(4000), 3))
    assert np.abs(learns.mean(axis=1) - 0.5).max() < 4 * 0.5 / np.sqrt(4000)
    assert np.abs((learns[0] == learns[1]).mean() - 0.5) < 4 * 0.5 / np.sqrt(4000)
    assert np.array_equal(learns, learned_from(jnp.arange(4000), 3)), "always the same ones"


def batch_of(params, nobody, made_at, reward, discount):
    count = len(made_at)
    encoded = NETWORKS.encode(params, views(count), nobody)
    return AllocatorBatch(
        view=views(count),
        previous=nobody,
        allocation=EVERY[:count],
        made_at=made_at,
        reward=reward,
        discount=jnp.full(count, discount),
        target=jnp.zeros(count),
        later=encoded,
        later_by_target=encoded,
        best=EVERY[:count],
        proposals=EVERY[:count, None],
    )


def test_only_critics_that_learn_from_a_decision_are_moved_by_it():
    params, nobody = initial(1)
    made_at = next(step for step in range(100) if sum(learned_from(jnp.asarray([step]), 3)[:, 0]) == 1)
    batch = batch_of(params, nobody, jnp.asarray([made_at]), jnp.ones(1), 0.5)
    gradients, of_target = jax.grad(lambda *both: EXPLORER.loss(NETWORKS, *both, batch)[0], argnums=(0, 1))(
        params, params
    )
    moved = [bool(jnp.any(gradients[CRITICS]["params"]["value"]["kernel"][critic] != 0)) for critic in range(3)]
    assert moved == learned_from(jnp.asarray([made_at]), 3)[:, 0].tolist()
    others = [gradients[name] for name in gradients if name != CRITICS]
    assert not any(jnp.any(leaf != 0) for leaf in jax.tree.leaves([others, of_target])), "nothing else learns from it"


@pytest.mark.parametrize(("discount", "expected"), [(0.0, 1.0), (0.5, 2.0)])
def test_critics_come_to_agree_where_they_have_seen_enough(discount, expected):
    """On a reward of 1 for ever, once with the episodes ending and once with a discount."""
    count = 8
    params, nobody = initial(count)
    optimiser = optax.adam(1e-2)

    def step(carry, made_at):
        params, state = carry
        batch = batch_of(params, nobody, made_at + jnp.arange(count), jnp.ones(count), discount)
        gradients, metrics = jax.grad(lambda live: EXPLORER.loss(NETWORKS, live, params, batch), has_aux=True)(params)
        updates, state = optimiser.update(gradients, state)
        return (optax.apply_updates(params, updates), state), metrics["critics_spread"]

    (trained, _), spread = jax.lax.scan(step, (params, optimiser.init(params)), jnp.arange(300))
    assert spread[-1] < 0.2 * spread[0]
    encoded = NETWORKS.encode(trained, views(count), nobody)
    values = values_by_critics(NETWORKS, trained, encoded, EVERY[:count, None])
    assert np.abs(np.asarray(values) - expected).max() < 0.2


def test_an_allocation_that_is_not_due_stays():
    params, nobody = initial(4)
    now = nobody + 2
    amounts = AllocationExploration(jnp.float32(0), jnp.float32(0))
    due = jnp.asarray([True, False, True, False])
    situations = Situation(None, views(4), now, now)
    taken = EXPLORER.allocate(NETWORKS, params, jax.random.key(2), situations, due, CandidateCounts(8), amounts)
    assert (taken[1::2] == 1).all()
