import jax
import jax.numpy as jnp
import numpy as np

from alma.task.choice import choose_by_logits, choose_uniformly


def test_choices_are_uniform_over_what_is_allowed():
    allowed = jnp.asarray([False, True, False, True, True])
    draws = choose_uniformly(jax.random.key(0), jnp.broadcast_to(allowed, (30_000, 5)))
    shares = np.bincount(np.asarray(draws), minlength=5) / 30_000
    np.testing.assert_allclose(shares, [0, 1 / 3, 0, 1 / 3, 1 / 3], atol=0.011)  # four standard errors


def test_no_choice_is_minus_one():
    assert choose_uniformly(jax.random.key(0), jnp.zeros((3, 4), bool)).tolist() == [-1, -1, -1]


def test_choices_by_logits_follow_the_softmax():
    logits = jnp.asarray([0.0, -1e9, 1.0, 2.0])
    draws = jax.random.uniform(jax.random.key(0), (30_000,))
    chosen = choose_by_logits(draws, jnp.broadcast_to(logits, (30_000, 4)))
    shares = np.bincount(np.asarray(chosen), minlength=4) / 30_000
    np.testing.assert_allclose(shares, np.asarray(jax.nn.softmax(logits)), atol=0.012)  # four standard errors
    assert shares[1] == 0


def test_extreme_draws_choose_something_possible():
    logits = jnp.asarray([[-1e9, 0.0, 0.0, -1e9]] * 2)
    assert choose_by_logits(jnp.asarray([0.0, 1 - 2**-24]), logits).tolist() == [1, 2]
