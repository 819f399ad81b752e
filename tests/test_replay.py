import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alma.replay import (
    Decision,
    Step,
    add_decisions,
    add_step,
    empty_decisions,
    empty_steps,
    sample_decisions,
    sample_windows,
    unfold,
)

COUNT = 3


def step(number):
    """A step whose state tells when and where it was made."""
    rows = jnp.arange(COUNT)
    small = jnp.zeros((COUNT, 2), jnp.int8)
    flags = jnp.zeros(COUNT, bool)
    state = {"time": jnp.full(COUNT, number), "env": rows}
    # Decisions are made every third step.
    since = jnp.full(COUNT, number % 3, jnp.int8)
    return Step(state, small, small, small, jnp.zeros((COUNT, 1)), flags, flags, since)


@pytest.mark.parametrize("written", [6, 7, 10, 23])
def test_windows_are_steps_in_a_row_of_one_environment(written):
    ring = empty_steps(step(0), 10)
    for number in range(written):
        ring = add_step(ring, step(number))
    windows, decided = jax.device_get(sample_windows(jax.random.key(written), ring, 400, 4, before=2))
    times, environments = windows.state["time"], windows.state["env"]
    assert times.shape == (4, 400)
    assert (np.diff(times, axis=0) == 1).all()
    assert (environments == environments[0]).all()
    assert set(times[0]) == set(range(max(0, written - 10) + 2, written - 3)), "those with two more steps before them"
    assert set(environments[0]) == set(range(COUNT))
    assert (decided["time"] == times // 3 * 3).all(), "where the allocation was decided on"
    assert (decided["env"] == environments).all()


def test_long_windows_unfold_into_all_short_ones():
    ring = empty_steps(step(0), 10)
    for number in range(10):
        ring = add_step(ring, step(number))
    long, _ = sample_windows(jax.random.key(0), ring, 2, 5, before=0)
    short = jax.device_get(unfold(long, 2))
    assert short.state["time"].shape == (2, 4 * 2)
    assert (np.diff(short.state["time"], axis=0) == 1).all()
    expected = np.concatenate([long.state["time"][t] for t in range(4)])
    np.testing.assert_array_equal(short.state["time"][0], expected)


def decision(reward, born):
    small = jnp.zeros((COUNT, 2), jnp.int8)
    return Decision(
        jnp.zeros(COUNT),
        small,
        small,
        jnp.asarray(reward, jnp.float32),
        jnp.zeros(COUNT),
        jnp.zeros(COUNT, bool),
        jnp.full(COUNT, born),
    )


def test_decisions_are_kept_for_each_environment_that_makes_them():
    ring = empty_decisions(decision([0] * COUNT, 0), 2)
    ring = add_decisions(ring, decision([1, 2, 3], 0), jnp.asarray([True, False, True]))
    ring = add_decisions(ring, decision([4, 5, 6], 0), jnp.asarray([True, False, False]))
    ring = add_decisions(ring, decision([7, 8, 9], 0), jnp.asarray([True, False, False]))
    assert ring.count.tolist() == [3, 0, 1]
    assert sorted(ring.rows.reward[0].tolist()) == [4, 7]
    sampled = sample_decisions(jax.random.key(0), ring, 300, jnp.int32(0), 100)
    assert set(sampled.reward[0].tolist()) == {3, 4, 7}


def test_decisions_are_drawn_less_often_the_older_they_are():
    ring = empty_decisions(decision([0] * COUNT, 0), 5)
    for time in (0, 20, 60, 100):
        ring = add_decisions(ring, decision([time] * COUNT, time), jnp.ones(COUNT, bool))
    drawn = sample_decisions(jax.random.key(0), ring, 4000, jnp.int32(100), 100).reward[0]
    # Youth is 0, 0.2, 0.6 and 1: what is as old as the limit is never drawn.
    shares = [float(jnp.mean(drawn == time)) for time in (0, 20, 60, 100)]
    np.testing.assert_allclose(shares, np.array([0, 0.2, 0.6, 1]) / 1.8, atol=0.03)
    assert shares[0] == 0


def test_decisions_come_with_what_stands_behind_them():
    ring = empty_decisions(decision([0] * COUNT, 0), 3)
    for time in range(5):
        ring = add_decisions(ring, decision([time] * COUNT, time), jnp.ones(COUNT, bool))
    drawn = sample_decisions(jax.random.key(0), ring, 100, jnp.int32(5), 100, length=2).reward
    assert set(zip(*np.asarray(drawn).tolist(), strict=True)) == {(2, 3), (3, 4), (4, 2)}
