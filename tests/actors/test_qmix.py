"""Targets worked out by hand; the loss of known values."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import AGENTS, SPEC, random_view, without

from alma.actors.actors import Actors
from alma.actors.networks import greedy
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.qmix import ActorBatch, actor_batch, qmix_loss, with_lambda_returns
from alma.actors.scope import Flat, Masked
from alma.learning.replay import Step, Windows, unfold
from alma.nn.popart import PopArt

GAMMA = 0.5


def test_greedy_takes_the_best_available():
    values = jnp.asarray([[3.0, 2.0, 1.0], [0.0, -5.0, -1.0]])
    available = jnp.asarray([[False, True, True], [False, True, True]])
    chosen = greedy(values, available)
    assert chosen.tolist() == [1, 2]


ALLOCATION = jnp.asarray([0, 0, 1])
"""Two agents in the first of three subtasks, one in the second, nobody in the third."""


@pytest.fixture(scope="module")
def learned():
    """Masked actors whose utilities are added up, and two sets of parameters."""
    networks = ActorNetworkOptions(width=8, heads=2, hidden=8)
    actors = Actors(SPEC, ActorOptions(batch=2, networks=networks), Masked(SPEC), training_period=1)
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
        end=jnp.zeros((3, 2), int),
    )
    batch = actor_batch(
        params,
        target_params,
        networks,
        lambda index: jax.tree.map(lambda leaf: leaf[index], table),
        jax.random.key(0),
        Windows(rows, rows.state, rows.state, has_final_state=jnp.zeros((3, 2), bool)),
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
    assert batch.weights.tolist() == [[1, 1, 0]] * 2, "nobody is in the third"


ENDS = {"terminated": [True, False, False], "truncated": [False, True, False]}
"""An episode each: over for good at its first step, by the time limit, and not at all."""


def ended_windows(kept):
    """Two steps of three environments. States: 0 at first, 1 where an episode ended, 2 what comes next in replay."""
    first, length = 3 * [0], 3 * [2]
    rows = Step(
        state=jnp.asarray([first, length]),
        allocation=jnp.broadcast_to(ALLOCATION, (2, 3, AGENTS)),
        last_action=jnp.stack([jnp.full((3, AGENTS), 1), jnp.full((3, AGENTS), 3)]),
        action=jnp.full((2, 3, AGENTS), 2),
        rewards=jnp.broadcast_to(jnp.asarray([1.0, 2.0, 4.0]), (2, 3, 3)),
        **{name: jnp.asarray([flags, [False] * 3]) for name, flags in ENDS.items()},
        since_decision=jnp.zeros((2, 3), int),
        end=jnp.zeros((2, 3), int),
    )
    return Windows(rows, rows.state, jnp.ones((2, 3), int), has_final_state=jnp.full((2, 3), kept))


END_VIEW = replace(random_view(1), active=jnp.asarray([False, True, True]))
"""Where episodes end: the first subtask is finished, the others are not."""


def ended_batch(learned, kept=True, **options):
    networks, params, target = learned
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), random_view(0), END_VIEW, random_view(2))
    return actor_batch(
        params,
        target,
        networks,
        lambda index: jax.tree.map(lambda leaf: leaf[index], table),
        jax.random.key(0),
        ended_windows(kept),
        gamma=GAMMA,
        reward_scale=1.0,
        **options,
    )


def greedy_values(learned, view, last_action, allocation=ALLOCATION):
    """The target network's values of subtasks if all do what the live network finds best, looking as `allocation` has
    it."""
    networks, params, target = learned
    sight, seen = (networks.look(jax.random.key(0), view, b) for b in (ALLOCATION, allocation))
    last = jnp.full(AGENTS, last_action)
    best = greedy(networks.utilities(params, seen, last), networks.scope.available(view, ALLOCATION))
    chosen = np.asarray(networks.utilities(target, sight, last))[np.arange(AGENTS), best]
    return np.array([chosen[0] + chosen[1], chosen[2]])


def test_values_end_with_their_own_subtask(learned):
    """Another subtask may end the episode: an unfinished one goes on in the state that the episode ended in."""
    batch = ended_batch(learned, value_ends="subtask")
    beyond = GAMMA * greedy_values(learned, END_VIEW, 2)
    np.testing.assert_allclose(batch.target[0, :2], [1, 2 + beyond[1]], rtol=1e-5)
    np.testing.assert_allclose(batch.target[1, :2], [1, 2 + beyond[1]], rtol=1e-5)
    going_on = [1, 2] + GAMMA * greedy_values(learned, random_view(2), 3)
    np.testing.assert_allclose(batch.target[2, :2], going_on, rtol=1e-5)
    assert batch.weights.tolist() == [[1, 1, 0]] * 3


def test_values_end_with_the_episode(learned):
    """If it was really over; a time limit is bootstrapped through."""
    batch = ended_batch(learned, value_ends="episode")
    np.testing.assert_allclose(batch.target[0, :2], [1, 2], rtol=1e-6)
    beyond = GAMMA * greedy_values(learned, END_VIEW, 2)
    np.testing.assert_allclose(batch.target[1, :2], [1, 2 + beyond[1]], rtol=1e-5)
    assert batch.weights.tolist() == [[1, 1, 0]] * 3


@pytest.mark.parametrize(("value_ends", "counting"), [("subtask", [0, 0, 1]), ("episode", [1, 0, 1])])
def test_steps_whose_next_state_is_lost_do_not_count(learned, value_ends, counting):
    """Where nothing of it is needed they do: an end without a value beyond."""
    weights = ended_batch(learned, kept=False, value_ends=value_ends).weights
    assert weights.tolist() == [[count, count, 0] for count in counting]


def test_a_team_of_which_nobody_is_left_has_no_future(learned):
    """Also where a head, such as that of Pop-Art, makes more than nothing of an empty sum."""
    networks, params, target = learned
    shifted = replace(networks, head=PopArt())
    head = {**PopArt().init(), "mean": jnp.float32(7), "square": jnp.float32(50)}
    died = without(without(random_view(1), 0), 1)  # the whole team of the first subtask
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), random_view(0), died, died)
    batch = actor_batch(
        {**params, "head": head},
        {**target, "head": head},
        shifted,
        lambda index: jax.tree.map(lambda leaf: leaf[index], table),
        jax.random.key(0),
        ended_windows(kept=True),
        gamma=GAMMA,
        reward_scale=1.0,
        value_ends="subtask",
    )
    assert batch.target[:, 0].tolist() == [1, 1, 1]
    assert (batch.target[:, 1] > 2).all(), "the other team has one"


def test_the_task_as_a_whole_ends_with_its_episode():
    """Flat actors learn one value, which has nothing beyond the end of the episode."""
    networks = ActorNetworkOptions(width=8, heads=2, hidden=8)
    actors = Actors(SPEC, ActorOptions(batch=2, networks=networks), Flat(SPEC), training_period=1)
    view = jax.tree.map(lambda leaf: leaf[None], random_view())
    params = actors.init(jax.random.key(1), view, ALLOCATION[None]).params
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), random_view(0), END_VIEW, random_view(2))
    windows = ended_windows(kept=True)
    batch = actor_batch(
        params,
        params,
        actors.networks,
        lambda index: jax.tree.map(lambda leaf: leaf[index], table),
        jax.random.key(0),
        windows._replace(steps=replace(windows.steps, rewards=windows.steps.rewards[..., :1])),
        gamma=GAMMA,
        reward_scale=1.0,
        value_ends="subtask",
    )
    assert float(batch.target[0, 0]) == 1
    assert float(batch.target[1, 0]) != 1, "a time limit is no end"


def test_the_next_actions_may_be_chosen_under_the_next_allocation(learned):
    """Teams stay what they were, and so do their values and what they may do; but who chooses looks at its next
    subtask's entities."""
    windows, moved = ended_windows(kept=True), jnp.asarray([1, 0, 1])
    steps = replace(windows.steps, allocation=windows.steps.allocation.at[1].set(moved))
    networks, params, target = learned
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), random_view(0), END_VIEW, random_view(2))

    def targets(choice):
        batch = actor_batch(
            params,
            target,
            networks,
            lambda index: jax.tree.map(lambda leaf: leaf[index], table),
            jax.random.key(0),
            windows._replace(steps=steps),
            gamma=GAMMA,
            reward_scale=1.0,
            next_allocation=choice,
        )
        return np.asarray(batch.target)

    kept, renewed = (greedy_values(learned, random_view(2), 3, allocation) for allocation in (ALLOCATION, moved))
    assert not np.allclose(kept, renewed), "or this could not tell them apart"
    for choice, allocation in (("kept", ALLOCATION), ("renewed", moved)):
        expected = [1, 2] + GAMMA * greedy_values(learned, random_view(2), 3, allocation)
        np.testing.assert_allclose(targets(choice)[2, :2], expected, rtol=1e-5)
    np.testing.assert_array_equal(targets("kept")[:2], targets("renewed")[:2])  # nothing follows an end


def test_the_loss_is_the_mean_square_of_errors_that_count(learned):
    networks, params, _ = learned
    sight = networks.look(jax.random.key(0), random_view(), ALLOCATION)
    sight = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), sight)
    chosen = jnp.asarray([[1.0, 2.0, 5.0], [0.0, 1.0, 4.0]])  # values of subtasks: 3 and 5, 1 and 4
    batch = ActorBatch(
        view=sight.view,
        decision_view=sight.view,
        allocation=jnp.stack([ALLOCATION, ALLOCATION]),
        last_action=jnp.zeros((2, AGENTS), int),
        action=jnp.zeros((2, AGENTS), int),
        target=jnp.asarray([[1.0, 8.0, 50.0], [9.0, 4.0, 50.0]]),
        weights=jnp.asarray([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]),
    )
    loss, metrics = qmix_loss(params, networks, batch, sight, chosen)
    assert float(loss) == pytest.approx((2**2 + 3**2 + 0) / 3)
    assert float(metrics["actor_value"]) == pytest.approx((3 + 5 + 4) / 3)


def consecutive_windows(allocations, terminated=(False, False, False)):
    """Three steps of one environment, each in a state of its own, and the step after them."""
    rows = Step(
        state=jnp.arange(4)[:, None],
        allocation=jnp.asarray(allocations)[:, None],
        last_action=jnp.ones((4, 1, AGENTS), int),
        action=jnp.full((4, 1, AGENTS), 2),
        rewards=jnp.asarray([[1.0, 2, 4], [8, 6, 2], [3, 5, 7], [0, 0, 0]])[:, None],
        terminated=jnp.asarray([*terminated, False])[:, None],
        truncated=jnp.zeros((4, 1), bool),
        since_decision=jnp.zeros((4, 1), int),
        end=jnp.zeros((4, 1), int),
    )
    return Windows(rows, rows.state, jnp.full((4, 1), 4), has_final_state=jnp.ones((4, 1), bool))


def targets_of(learned, windows, n_step, decay=0.0):
    """Targets of the steps of a window: n-step ones, or one-step targets with traces."""
    networks, params, target = learned
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(random_view(seed) for seed in (0, 2, 1, 3)), END_VIEW)
    batch = actor_batch(
        params,
        target,
        networks,
        lambda index: jax.tree.map(lambda leaf: leaf[index], table),
        jax.random.key(0),
        unfold(windows, n_step + 1),
        gamma=GAMMA,
        reward_scale=1.0,
    )
    if decay:
        batch = with_lambda_returns(batch, windows.steps.terminated[:3], decay)
    return np.asarray(batch.target)


def test_full_traces_are_returns_of_the_whole_window(learned):
    """With lambda 1 and an allocation that is kept, the first target is the return over all steps of the window."""
    windows = consecutive_windows([ALLOCATION] * 4)
    traced, whole = targets_of(learned, windows, 1, decay=1.0), targets_of(learned, windows, 3)
    np.testing.assert_allclose(traced[0, :2], whole[0, :2], rtol=1e-5)
    assert not np.allclose(traced[0, :2], targets_of(learned, windows, 1)[0, :2])


def test_traces_mix_returns_of_all_lengths(learned):
    """(1 - lambda) times the one-step return, lambda (1 - lambda) times that of two steps, and the rest of three."""
    windows, decay = consecutive_windows([ALLOCATION] * 4), 0.7
    one, two, three = (targets_of(learned, windows, n)[0, :2] for n in (1, 2, 3))
    expected = (1 - decay) * one + decay * (1 - decay) * two + decay**2 * three
    np.testing.assert_allclose(targets_of(learned, windows, 1, decay)[0, :2], expected, rtol=1e-5)


def test_traces_end_with_an_episode(learned):
    windows = consecutive_windows([ALLOCATION] * 4, terminated=(False, True, False))
    traced = targets_of(learned, windows, 1, decay=1.0)
    np.testing.assert_allclose(traced[0, :2], [1 + GAMMA * 8, 2 + GAMMA * 6], rtol=1e-6)
    np.testing.assert_allclose(traced[1, :2], [8, 6], rtol=1e-6, err_msg="what comes next is another episode")


def test_traces_are_cut_for_subtasks_whose_team_changes_only(learned):
    """The third agent goes from the second subtask to the third: the team of the first one goes on as it was."""
    moved = jnp.asarray([0, 0, 2])
    windows = consecutive_windows([ALLOCATION, moved, moved, moved])
    traced, one_step = targets_of(learned, windows, 1, decay=1.0), targets_of(learned, windows, 1)
    assert traced[0, 0] == pytest.approx(targets_of(learned, consecutive_windows([ALLOCATION] * 4), 3)[0, 0], rel=1e-5)
    assert traced[0, 1] == one_step[0, 1]
    assert traced[1, 2] != one_step[1, 2], "the team of the third subtask stays from then on"
