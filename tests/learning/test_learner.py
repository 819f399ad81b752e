"""One step of learning, worked out by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alma.learning.learner import Clock, begin_learner, gradient_step, update_average
from alma.learning.options import LearningOptions


def options(**changed):
    return LearningOptions(gamma=0.9, batch=1, **{"learning_rate": 0.01, "target_rate": 0.5, **changed})


def clock(progress=0.0, episodes=0):
    return Clock(jnp.int32(0), jnp.int32(episodes), jnp.float32(progress))


def loss(params):
    return 3.0 * params["w"], {"loss": 3.0 * params["w"]}


def step(level, chosen, now=None):
    return gradient_step(level, jax.grad(loss, has_aux=True), chosen, now or clock())[0]


def begin(chosen):
    return begin_learner({"w": jnp.float32(1.0)}, chosen)


def test_adam_takes_a_step_of_the_learning_rate():
    assert float(step(begin(options()), options()).params["w"]) == pytest.approx(0.99, abs=1e-6)


def test_rmsprop_by_hand():
    chosen = options(optimiser="rmsprop")
    mean_square = 0.01 * 9.0
    expected = 1 - 0.01 * 3.0 / (np.sqrt(mean_square) + 1e-5)
    assert float(step(begin(chosen), chosen).params["w"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("progress", "rate"), [(0.0, 0.01), (0.5, 0.006), (1.0, 0.002)])
def test_the_learning_rate_falls_to_its_final_share(progress, rate):
    chosen = options(final_rate=0.2)
    assert float(step(begin(chosen), chosen, clock(progress)).params["w"]) == pytest.approx(1 - rate, abs=1e-6)


@pytest.mark.parametrize(("progress", "rate"), [(0.0, 0.01), (0.6, 0.01), (0.8, 0.006), (1.0, 0.002)])
def test_the_learning_rate_may_fall_in_the_last_part_of_training_alone(progress, rate):
    chosen = options(final_rate=0.2, falls_from=0.6)
    assert float(step(begin(chosen), chosen, clock(progress)).params["w"]) == pytest.approx(1 - rate, abs=1e-6)


def test_gradients_are_clipped():
    chosen = options(optimiser="rmsprop", clip=1.0)
    expected = 1 - 0.01 * 1.0 / (np.sqrt(0.01) + 1e-5)
    assert float(step(begin(chosen), chosen).params["w"]) == pytest.approx(expected, rel=1e-5)


def test_proposals_and_values_are_clipped_apart():
    """A step of RMSProp is the gradient over its own size, so the first one tells nothing; the second does."""
    chosen = options(optimiser="rmsprop", clip=1.0)

    def both(params, scale):
        return scale * params["critic"] + 0.5 * params["proposal"], {}

    level = begin_learner({"critic": jnp.float32(0.0), "proposal": jnp.float32(0.0)}, chosen)
    for scale in (1.0, 100.0):
        before = level.params
        level, _ = gradient_step(level, jax.grad(partial(both, scale=scale), has_aux=True), chosen, clock())
    squares = 0.5**2 * 0.01 * (1 + 0.99)  # of the proposal's gradients, which the critic's do not shrink
    moved = float(before["proposal"] - level.params["proposal"])
    assert moved == pytest.approx(0.01 * 0.5 / (np.sqrt(squares) + 1e-5), rel=1e-5)
    squares = 0.01 * (1 + 0.99)  # of the critic's, 1 and cut to 1
    moved = float(before["critic"] - level.params["critic"])
    assert moved == pytest.approx(0.01 / (np.sqrt(squares) + 1e-5), rel=1e-5)


def test_targets_follow_after_every_update():
    level = step(begin(options()), options())
    assert float(level.target["w"]) == pytest.approx((1 + float(level.params["w"])) / 2)


def test_targets_are_copied_every_so_many_episodes():
    chosen = options(target_rate=1.0, target_episodes=10)
    level = begin(chosen)
    for episodes, copied in ((4, False), (9, False), (10, True), (15, False), (21, True)):
        before = float(level.target["w"])
        level = step(level, chosen, clock(episodes=episodes))
        assert float(level.target["w"]) == (float(level.params["w"]) if copied else before)


def averaged(course):
    """The average after every update of a course of parameters that began with 100."""
    averages = [{"w": jnp.float32(100.0)}]
    for updates, value in enumerate(course, start=1):
        averages.append(update_average(averages[-1], {"w": jnp.float32(value)}, jnp.int32(updates)))
    return [float(average["w"]) for average in averages[1:]]


def test_averages_follow_at_once_at_first():
    assert averaged(range(10)) == list(range(10))


def test_averages_look_back_on_a_tenth_of_the_run():
    """Of parameters that rise by 1 at every update t, a + (10 / t) (t - a) is 10 (t + 1) / 11, however long the run."""
    course = averaged(range(1, 2001))
    for updates in (10, 200, 2000):
        assert course[updates - 1] == pytest.approx(10 * (updates + 1) / 11, rel=1e-5)
