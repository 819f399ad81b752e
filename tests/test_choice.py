import jax
import jax.numpy as jnp
import numpy as np

from alma.choice import choose_uniformly


def test_choices_are_uniform_over_what_is_allowed():
    allowed = jnp.asarray([False, True, False, True, True])
    draws = choose_uniformly(jax.random.key(0), jnp.broadcast_to(allowed, (30_000, 5)))
    shares = np.bincount(np.asarray(draws), minlength=5) / 30_000
    np.testing.assert_allclose(shares, [0, 1 / 3, 0, 1 / 3, 1 / 3], atol=0.011)  # four standard errors


def test_no_choice_is_minus_one():
    assert choose_uniformly(jax.random.key(0), jnp.zeros((3, 4), bool)).tolist() == [-1, -1, -1]
