"""Returns and targets worked out by hand; the loss of known values."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from views import AGENTS, SPEC, random_view

from alma.learning.actors import Actors
from alma.learning.qmix import ActorBatch, actor_batch, greedy, n_step_returns, qmix_loss, take
from alma.networks.scope import Masked
from alma.presets import ActorNetworkOptions, ActorOptions
from alma.replay import Step

GAMMA = 0.5


def window(rewards, allocations, terminated=(), truncated=()):
    """One environment, one agent, one subtask; the last step only lends its state."""
    length = len(rewards)

    def flags(steps):
        return jnp.asarray([[t in steps] for t in range(length)])

    return Step(
        state=jnp.arange(length)[:, None],
        allocation=jnp.asarray(allocations).reshape(length, 1, 1),
        last_action=jnp.zeros((length, 1, 1), int),
        action=jnp.zeros((length, 1, 1), int),
        rewards=jnp.asarray(rewards, jnp.float32).reshape(length, 1, 1),
        terminated=flags(terminated),
        truncated=flags(truncated),
        since_decision=jnp.zeros((length, 1), int),
    )


@pytest.mark.parametrize(
    ("steps", "reward", "used", "ended"),
    [
        (window([1, 2, 4, 8], [0, 0, 0, 0]), 1 + 2 / 2 + 4 / 4, 3, False),
        (window([1, 2, 4, 8], [0, 0, 1, 1]), 1 + 2 / 2, 2, False),  # allocated elsewhere at step 2
        (window([1, 2, 4, 8], [0, 1, 0, 0]), 1, 1, False),  # coming back does not help
        (window([1, 2, 4, 8], [0, 0, 0, 0], terminated=[1]), 1 + 2 / 2, 2, True),
        (window([1, 2, 4, 8], [0, 0, 0, 0], truncated=[1]), 1, 1, False),  # bootstrap before the lost state
        (window([1, 2, 4, 8], [0, 0, 0, 0], truncated=[0]), 0, 0, False),  # nothing to learn
        (window([1, 2, 4, 8], [0, 0, 0, 0], terminated=[3]), 1 + 2 / 2 + 4 / 4, 3, False),  # beyond the window
        (window([3, 9], [0, 0]), 3, 1, False),
    ],
)
def test_returns(steps, reward, used, ended):
    returns = n_step_returns(steps, GAMMA)
    assert float(returns.rewards[0, 0]) == reward
    assert int(returns.steps[0]) == used
    assert bool(returns.ended[0]) is ended


def test_greedy_takes_the_best_available():
    values = jnp.asarray([[3.0, 2.0, 1.0], [0.0, -5.0, -1.0]])
    available = jnp.asarray([[False, True, True], [False, True, True]])
    chosen = greedy(values, available)
    assert chosen.tolist() == [1, 2]
    np.testing.assert_allclose(take(values, chosen), [2.0, -1.0])


ALLOCATION = jnp.asarray([0, 0, 1])
"""Two agents in the first of three subtasks, one in the second, nobody in the third."""


@pytest.fixture(scope="module")
def learned():
    """Masked actors whose utilities are added up, and two sets of parameters."""
    networks = ActorNetworkOptions(width=8, heads=2, hidden=8)
    actors = Actors(SPEC, ActorOptions(batch=2, networks=networks), Masked(SPEC), period=1)
    view = jax.tree.map(lambda leaf: leaf[None], random_view())
    params, target = (actors.init(jax.random.key(seed), view, ALLOCATION[None]).params for seed in (1, 2))
    return actors.networks, params, target


def test_targets_by_hand(learned):
    """Two steps of reward, then the target network's value of the actions that the live network finds best.

    In the state after them an action is unavailable, and the second row has finished its first subtask by then.
    """
    networks, params, target_params = learned
    closed = random_view(1).available.at[0, 0].set(False)
    later = replace(random_view(1), available=closed)
    finished = replace(later, active=jnp.asarray([False, True, True]))
    views = [random_view(0), random_view(2), later, finished]
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *views)
    rewards = np.array([[[1, 2, 4], [1, 2, 4]], [[8, 6, 2], [8, 6, 2]], [[99, 99, 99], [99, 99, 99]]], np.float32)
    rows = Step(
        state=jnp.asarray([[0, 0], [1, 1], [2, 3]]),
        allocation=jnp.broadcast_to(ALLOCATION, (3, 2, AGENTS)),
        last_action=jnp.ones((3, 2, AGENTS), int),
        action=jnp.zeros((3, 2, AGENTS), int),
        rewards=jnp.asarray(rewards),
        terminated=jnp.zeros((3, 2), bool),
        truncated=jnp.zeros((3, 2), bool),
        since_decision=jnp.zeros((3, 2), int),
    )
    batch = actor_batch(
        params,
        target_params,
        networks,
        lambda index: jax.tree.map(lambda leaf: leaf[index], table),
        jax.random.key(0),
        rows,
        rows.state,
        gamma=GAMMA,
        reward_scale=10.0,
    )
    sight = networks.look(jax.random.key(0), later, ALLOCATION)
    live, by_target = (np.asarray(networks.utilities(p, sight, jnp.ones(AGENTS, int))) for p in (params, target_params))
    # Attacking what belongs to another subtask is not available either, as for all tasks that mask actions.
    allowed = np.asarray(networks.scope.available(later, ALLOCATION))
    assert not allowed[0, 0]
    chosen = np.where(allowed, live, -np.inf).argmax(axis=-1)
    values = by_target[np.arange(AGENTS), chosen]
    assert (chosen != np.where(allowed, by_target, -np.inf).argmax(axis=-1)).any(), "or this could not tell them apart"
    bootstrap = np.array([values[0] + values[1], values[2], 0])
    expected = 10 * (rewards[0, 0] + GAMMA * rewards[1, 0]) + GAMMA**2 * bootstrap
    np.testing.assert_allclose(batch.target[0, :2], expected[:2], rtol=1e-5)
    np.testing.assert_allclose(batch.target[1, 0], 10 * (1 + GAMMA * 8), rtol=1e-6, err_msg="finished: no future")
    np.testing.assert_allclose(batch.target[1, 1], expected[1], rtol=1e-5)
    assert batch.counts.tolist() == [[1, 1, 0]] * 2, "nobody is in the third"


def test_steps_that_were_cut_off_do_not_count(learned):
    """The second row ran out of time at its first step: what came after it is not in replay."""
    networks, params, target_params = learned
    view = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (2, 2, *leaf.shape)), random_view())
    rows = Step(
        state=view,
        allocation=jnp.broadcast_to(ALLOCATION, (2, 2, AGENTS)),
        last_action=jnp.ones((2, 2, AGENTS), int),
        action=jnp.zeros((2, 2, AGENTS), int),
        rewards=jnp.ones((2, 2, 3)),
        terminated=jnp.zeros((2, 2), bool),
        truncated=jnp.asarray([[False, True], [False, False]]),
        since_decision=jnp.zeros((2, 2), int),
    )
    batch = actor_batch(
        params,
        target_params,
        networks,
        lambda view: view,
        jax.random.key(0),
        rows,
        rows.state,
        gamma=GAMMA,
        reward_scale=1.0,
    )
    assert batch.counts.tolist() == [[1, 1, 0], [0, 0, 0]]


def test_the_loss_is_the_mean_square_of_errors_that_count(learned):
    networks, params, _ = learned
    sight = networks.look(jax.random.key(0), random_view(), ALLOCATION)
    sight = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), sight)
    chosen = jnp.asarray([[1.0, 2.0, 5.0], [0.0, 1.0, 4.0]])  # values of subtasks: 3 and 5, 1 and 4
    batch = ActorBatch(
        view=sight.view,
        decided=sight.view,
        allocation=jnp.stack([ALLOCATION, ALLOCATION]),
        last_action=jnp.zeros((2, AGENTS), int),
        action=jnp.zeros((2, AGENTS), int),
        target=jnp.asarray([[1.0, 8.0, 50.0], [9.0, 4.0, 50.0]]),
        counts=jnp.asarray([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]),
    )
    loss, figures = qmix_loss(params, networks, batch, sight, chosen)
    assert float(loss) == pytest.approx((2**2 + 3**2 + 0) / 3)
    assert float(figures["actor_value"]) == pytest.approx((3 + 5 + 4) / 3)
