import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alma
from alma.play.decisions import decision_due
from alma.play.environments import advance, start
from alma.play.trees import select
from alma.task.choice import choose_uniformly


@pytest.mark.parametrize(
    ("since", "before", "now", "due"),
    [
        (4, [True, True], [True, True], False),
        (5, [True, True], [True, True], True),
        (1, [True, True], [True, False], True),  # one finished
        (1, [True, False], [True, True], True),  # one appeared
    ],
)
def test_decision_points(since, before, now, due):
    assert bool(decision_due(jnp.int32(since), 5, jnp.asarray(before), jnp.asarray(now))) is due


def test_select_works_row_by_row():
    chosen = select(jnp.asarray([True, False]), {"a": jnp.ones((2, 3))}, {"a": jnp.zeros((2, 3))})
    assert chosen["a"].tolist() == [[1, 1, 1], [0, 0, 0]]


COUNT = 16


@pytest.fixture(scope="module")
def history():
    """Random play in environments that reset themselves, with short episodes so that many do."""
    task = alma.make("save-the-city", max_steps=30)

    def body(carry, key):
        environments = carry
        action_key, key = jax.random.split(key)
        view = jax.vmap(task.view)(environments.state)
        actions = choose_uniformly(action_key, view.available)
        after, reached, outcome = advance(task, key, environments, actions)
        return after, (environments.state, reached, outcome, after.state)

    @jax.jit
    def run(key):
        return jax.lax.scan(body, start(task, key, COUNT), jax.random.split(key, 200))[1]

    return jax.device_get(run(jax.random.key(0)))


def test_environments_go_on_from_where_they_are_or_start_anew(history):
    _, reached, outcome, after = history
    done = outcome.terminated | outcome.truncated
    assert done.sum() > 50
    assert (after.time[done] == 0).all()
    assert (after.time[~done] == reached.time[~done]).all()
    assert (after.health[~done] == reached.health[~done]).all()


def test_the_last_state_of_an_episode_is_not_lost(history):
    before, reached, _, _ = history
    assert (reached.time == before.time + 1).all()


def test_no_initial_state_is_handed_out_twice(history):
    _, _, outcome, after = history
    done = outcome.terminated | outcome.truncated
    starts = after.health[done]
    assert len(np.unique(starts, axis=0)) == len(starts)


def test_restarts_are_distributed_like_resets():
    """The store of initial states must not favour any: compare team sizes with their known shares."""
    task = alma.make("save-the-city", max_steps=1)

    def body(environments, key):
        actions = jnp.zeros((64, 5), jnp.int32)
        after, _, _ = advance(task, key, environments, actions)
        return after, jnp.sum(after.state.agent_type >= 0, axis=1)

    keys = jax.random.split(jax.random.key(1), 150)
    sizes = jax.jit(lambda: jax.lax.scan(body, start(task, keys[0], 64), keys)[1])()
    shares = np.bincount(np.asarray(sizes).ravel(), minlength=6)[2:] / sizes.size
    np.testing.assert_allclose(shares, np.array([3, 1, 3, 6]) / 13, atol=0.021)  # four standard errors


def test_advance_is_deterministic():
    task = alma.make("save-the-city")
    run = jax.jit(lambda key: advance(task, key, start(task, key, 4), jnp.zeros((4, 5), jnp.int32)))
    first, second = (jax.device_get(run(jax.random.key(7))) for _ in range(2))
    assert all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(second)))
