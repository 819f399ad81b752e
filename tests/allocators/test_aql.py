"""Allocation as a one-step problem whose best answer is known."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
from helpers.views import FEATURES, random_view, without

from alma import NOBODY
from alma.allocators.aql import CandidateCounts, allocator_batch, aql_loss, choose, join_decisions, move_one_agent
from alma.allocators.networks import PairNetworks
from alma.allocators.proposal import log_probability
from alma.learning.replay import Decision
from alma.nn.popart import Plain

NETWORKS = PairNetworks(Plain(), 32, 16, things=2, features=tuple(range(FEATURES)))
EVERY = jnp.asarray(list(itertools.product(range(3), repeat=3)))
BATCH = 32


def batch_of(view):
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (BATCH, *leaf.shape)), view)


def alone(decision):
    """Chains of one decision each."""
    return jax.tree.map(lambda leaf: leaf[None], decision)


def batch_from(params, target, view, decision, candidates, **options):
    """What is learned from a decision that leads to the same view."""
    return allocator_batch(
        params,
        target,
        NETWORKS,
        lambda _: view,
        jax.random.key(1),
        alone(decision),
        gamma=0.9,
        reward_scale=1.0,
        candidates=candidates,
        **options,
    )


def test_the_best_allocation_is_found():
    """Random payoffs for each team in each subtask, learned from random allocations; all 27 are enumerated."""
    view = random_view()
    by_team = jax.random.normal(jax.random.key(0), (3, 8))
    team = jnp.einsum("pam,a->pm", jax.nn.one_hot(EVERY, 3), jnp.asarray([1, 2, 4])).astype(int)
    payoff = jnp.sum(by_team[jnp.arange(3), team], axis=1)
    nobody = jnp.full((BATCH, 3), NOBODY)
    params = NETWORKS.init(jax.random.key(10), batch_of(view), nobody)
    optimiser = optax.adam(3e-3)

    @jax.jit
    def train(params, state, key):
        def step(carry, key):
            params, state = carry
            draw_key, loss_key = jax.random.split(key)
            drawn = jax.random.randint(draw_key, (BATCH,), 0, 27)
            decision = Decision(
                state=None,
                previous=nobody,
                allocation=EVERY[drawn],
                reward=payoff[drawn],
                next_state=None,
                terminated=jnp.ones(BATCH, bool),
                made_at=jnp.zeros(BATCH, jnp.int32),
            )
            batch = allocator_batch(
                params,
                params,
                NETWORKS,
                lambda _: batch_of(view),
                loss_key,
                alone(decision),
                gamma=0.9,
                reward_scale=1.0,
                candidates=CandidateCounts(8, 8),
            )
            gradients, metrics = jax.grad(aql_loss, has_aux=True)(params, NETWORKS, batch, 0.05)
            updates, state = optimiser.update(gradients, state)
            return (optax.apply_updates(params, updates), state), metrics

        return jax.lax.scan(step, (params, state), jax.random.split(key, 1000))

    (params, _), metrics = train(params, optimiser.init(params), jax.random.key(5))
    assert float(metrics["critic_loss"][-50:].mean()) < 0.1
    encoded = NETWORKS.encode(params, batch_of(view), nobody)
    chosen, _ = choose(NETWORKS, params, jax.random.key(6), encoded, batch_of(view), CandidateCounts(8, 8))
    earned = np.asarray(payoff)[np.asarray(chosen) @ [9, 3, 1]]
    assert earned.mean() > float(payoff.max()) - 0.1


def test_gradients_keep_to_their_own_network():
    """The critic's error does not move the proposal, nor the other way round; all parameters of both move."""
    view = batch_of(random_view())
    nobody = jnp.full((BATCH, 3), NOBODY)
    params = NETWORKS.init(jax.random.key(0), view, nobody)
    decision = Decision(
        None, nobody + 1, jnp.zeros((BATCH, 3), int), jnp.ones(BATCH), None, jnp.zeros(BATCH, bool), nobody[:, 0]
    )

    def gradients(part):
        def loss(params, target):
            batch = batch_from(params, target, view, decision, CandidateCounts(4))
            return aql_loss(params, NETWORKS, batch, 0.01)[1][part]

        return jax.jit(jax.grad(loss, argnums=(0, 1)))(params, params)

    of_critic, of_proposal = ("encoder", "critic"), ("proposal",)
    for part, own, other in (("critic_loss", of_critic, of_proposal), ("proposal_loss", of_proposal, of_critic)):
        live, target = gradients(part)
        assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves([live[name] for name in own]))
        assert not any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(([live[name] for name in other], target)))


def test_entropy_is_that_along_the_proposals():
    view = batch_of(random_view())
    nobody = jnp.full((BATCH, 3), NOBODY)
    params = NETWORKS.init(jax.random.key(0), view, nobody)
    decision = Decision(None, nobody, nobody + 1, jnp.ones(BATCH), None, jnp.zeros(BATCH, bool), nobody[:, 0])

    def entropy(count):
        batch = batch_from(params, params, view, decision, CandidateCounts(4, 2), entropy_proposals=count)
        return batch, float(aql_loss(params, NETWORKS, batch, 0.01)[1]["proposal_entropy"])

    batch, along_proposals = entropy(4)
    assert batch.proposals.shape == (BATCH, 4, 3), "variations are no draws of the proposal"
    encoding = NETWORKS.encode_for_proposal(params, batch.later)
    each = [log_probability(encoding, batch.proposals[:, n])[1] for n in range(4)]
    np.testing.assert_allclose(along_proposals, np.mean(each), rtol=1e-5)
    batch, along_best = entropy(0)
    np.testing.assert_allclose(along_best, np.mean(log_probability(encoding, batch.best)[1]), rtol=1e-5)
    assert along_best != along_proposals


def test_targets_by_hand():
    """Rewards, and the target critic's value of what the live critic found best; nothing beyond an end."""
    view = batch_of(random_view())
    previous = jnp.zeros((BATCH, 3), int)
    params = NETWORKS.init(jax.random.key(0), view, previous)
    target_params = NETWORKS.init(jax.random.key(1), view, previous)
    terminated = jnp.arange(BATCH) < 10
    reward = jnp.arange(BATCH, dtype=jnp.float32)
    decision = Decision(None, previous, previous + 1, reward, None, terminated, jnp.zeros(BATCH, int))
    key = jax.random.key(3)
    batch = allocator_batch(
        params,
        target_params,
        NETWORKS,
        lambda _: view,
        key,
        alone(decision),
        gamma=0.9,
        reward_scale=2.0,
        candidates=CandidateCounts(6),
    )
    before = jnp.where(terminated[:, None], NOBODY, 1)
    before = jnp.broadcast_to(before, (BATCH, 3))
    encoded = NETWORKS.encode(params, view, before)
    drawn = NETWORKS.proposals(params, jax.random.split(key)[0], encoded, 6)
    best = np.argmax(NETWORKS.values(params, encoded, drawn), axis=1)
    later = NETWORKS.encode(target_params, view, before)
    values = np.asarray(NETWORKS.values(target_params, later, drawn))[np.arange(BATCH), best]
    expected = 2 * np.asarray(reward) + np.where(terminated, 0, 0.9 * values)
    np.testing.assert_allclose(batch.target, expected, rtol=1e-5)
    np.testing.assert_array_equal(batch.best, np.asarray(drawn)[np.arange(BATCH), best])


def test_variations_change_one_agent():
    view = without(random_view(), 1)
    view = replace(view, active=jnp.asarray([True, False, True]))
    before = jnp.broadcast_to(jnp.asarray([0, NOBODY, 2]), (2000, 3))
    after = np.asarray(move_one_agent(jax.random.key(0), before, view))
    changed = after != np.asarray(before)
    assert (changed.sum(axis=1) <= 1).all()
    assert not changed[:, 1].any(), "absent agents stay absent"
    assert set(np.unique(after[:, [0, 2]])) == {0, 2}, "active subtasks only"
    assert abs(changed.any(axis=1).mean() - 0.5) < 0.05, "half the draws are what it was before"


def test_variations_find_what_the_proposal_does_not_suggest():
    """A proposal that is sure of a bad allocation; the critic prefers a neighbour."""
    view = batch_of(random_view())
    nobody = jnp.full((BATCH, 3), NOBODY)
    params = NETWORKS.init(jax.random.key(0), view, nobody)
    sure = jax.tree.map(lambda leaf: leaf * 1000.0, params["proposal"])
    params = {**params, "proposal": sure}
    encoded = NETWORKS.encode(params, view, nobody)
    alone, _ = choose(NETWORKS, params, jax.random.key(1), encoded, view, CandidateCounts(8))
    varied, _ = choose(NETWORKS, params, jax.random.key(1), encoded, view, CandidateCounts(8, 8))

    def worth(chosen):
        return NETWORKS.values(params, encoded, chosen[:, None])[:, 0]

    assert (worth(varied) >= worth(alone) - 1e-6).all()
    assert worth(varied).mean() > worth(alone).mean()


def test_decisions_are_chained_up_by_hand():
    """Three decisions each: one episode; one that ends with the second; one that was cut off after the first; one at
    the end of its ring, where the oldest decision happens to begin in the same state."""
    chain = Decision(
        state=jnp.asarray([[0, 10, 20, 30], [1, 11, 29, 31], [2, 12, 21, 32]]),
        previous=jnp.full((3, 4, 1), NOBODY),
        allocation=jnp.asarray([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])[..., None],
        reward=jnp.asarray([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [100.0, 200.0, 300.0, 400.0]]),
        next_state=jnp.asarray([[1, 11, 21, 31], [2, 12, 30, 32], [3, 13, 22, 33]]),
        terminated=jnp.zeros((3, 4), bool).at[1, 1].set(True),
        made_at=jnp.asarray([[1, 1, 1, 9], [2, 2, 2, 2], [3, 3, 3, 3]]),
    )
    joined, in_force, discount = join_decisions(chain, 0.5)
    assert joined.state.tolist() == [0, 10, 20, 30]
    assert joined.allocation[:, 0].tolist() == [0, 1, 2, 3]
    assert joined.reward.tolist() == [1 + 5 + 25, 2 + 10, 3, 4]
    assert joined.next_state.tolist() == [3, 12, 21, 31]
    assert joined.terminated.tolist() == [False, True, False, False]
    assert in_force[:, 0].tolist() == [8, 5, 2, 3]
    assert discount.tolist() == [0.125, 0.25, 0.5, 0.5]
