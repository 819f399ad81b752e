import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alma.learning.replay import (
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


def state(time):
    """A state that tells when and where it was."""
    return {"time": jnp.full(COUNT, float(time)), "env": jnp.arange(COUNT)}


def step(number, done=()):
    """A step of all environments; episodes end in some of them."""
    small = jnp.zeros((COUNT, 2), jnp.int8)
    flags = jnp.zeros(COUNT, bool)
    ended = flags.at[jnp.asarray(done, int)].set(True)
    # Decisions are made every third step.
    since = jnp.full(COUNT, number % 3, jnp.int8)
    ends = (ended, flags) if number % 2 else (flags, ended)
    return Step(state(number), small, small, small, jnp.zeros((COUNT, 1)), *ends, since, jnp.zeros(COUNT, jnp.int32))


def written(numbers, length=10, done=lambda number: ()):
    """A ring after some steps, which may end episodes; states reached by a step are those half a step later."""
    ring = empty_steps(step(0), length)
    for number in numbers:
        reached = jax.tree.map(lambda leaf: leaf + 0.5, state(number))
        ring = add_step(ring, step(number, done(number)), {**reached, "env": jnp.arange(COUNT)})
    return ring


@pytest.mark.parametrize("count", [6, 7, 10, 23])
def test_windows_are_steps_in_a_row_of_one_environment(count):
    windows = jax.device_get(sample_windows(jax.random.key(count), written(range(count)), 400, 4, max_since_decision=2))
    times, environments = windows.steps.state["time"], windows.steps.state["env"]
    decided = windows.decision_states
    assert times.shape == (4, 400)
    assert (np.diff(times, axis=0) == 1).all()
    assert (environments == environments[0]).all()
    assert set(times[0]) == set(range(max(0, count - 10) + 2, count - 3)), "those with two more steps before them"
    assert set(environments[0]) == set(range(COUNT))
    assert (decided["time"] == times // 3 * 3).all(), "where the allocation was decided on"
    assert (decided["env"] == environments).all()


def test_long_windows_unfold_into_all_short_ones():
    long = sample_windows(jax.random.key(0), written(range(10)), 2, 5, max_since_decision=0).steps
    short = jax.device_get(unfold(long, 2))
    assert short.state["time"].shape == (2, 4 * 2)
    assert (np.diff(short.state["time"], axis=0) == 1).all()
    expected = np.concatenate([long.state["time"][t] for t in range(4)])
    np.testing.assert_array_equal(short.state["time"][0], expected)


def test_states_that_episodes_ended_in_are_found_again():
    """With every step that ended an episode comes the state it led to; only the latest of them are kept."""
    ring = written(range(12), length=20, done=lambda number: {4: (0,), 7: (0, 2), 9: (1,)}.get(number, ()))
    # Room is for 20 x 3 / 8 = 7 of them, and there have been 4.
    assert (ring.final_states_kept, int(ring.ended)) == (7, 4)
    windows = jax.device_get(sample_windows(jax.random.key(0), ring, 3000, 2, max_since_decision=0))
    times, environments = windows.steps.state["time"], windows.steps.state["env"]
    done = windows.steps.terminated | windows.steps.truncated
    found = set(zip(times[done].tolist(), environments[done].tolist(), strict=True))
    assert found == {(4, 0), (7, 0), (7, 2), (9, 1)}
    np.testing.assert_array_equal(windows.has_final_state, done)
    np.testing.assert_array_equal(windows.final_states["time"][done], times[done] + 0.5)
    np.testing.assert_array_equal(windows.final_states["env"][done], environments[done])


def test_of_many_ends_the_oldest_are_given_up():
    ring = written(range(20), length=20, done=lambda number: (number % 3,))
    windows = jax.device_get(sample_windows(jax.random.key(0), ring, 3000, 2, max_since_decision=0))
    done = windows.steps.terminated | windows.steps.truncated
    times = windows.steps.state["time"]
    np.testing.assert_array_equal(windows.has_final_state, done & (times >= 13))
    np.testing.assert_array_equal(
        windows.final_states["time"][windows.has_final_state], times[windows.has_final_state] + 0.5
    )


def decision(reward, made_at):
    small = jnp.zeros((COUNT, 2), jnp.int8)
    return Decision(
        jnp.zeros(COUNT),
        small,
        small,
        jnp.asarray(reward, jnp.float32),
        jnp.zeros(COUNT),
        jnp.zeros(COUNT, bool),
        jnp.full(COUNT, made_at),
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
