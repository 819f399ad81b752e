"""Sums over what a mask leaves."""

import jax
import jax.numpy as jnp
import numpy as np

from alma.nn.masks import bounded_sum, masked_sum

ROWS = jax.random.normal(jax.random.key(0), (2, 3, 4, 5))


def test_a_masked_sum_is_the_sum_of_the_rows_that_the_mask_keeps():
    """One mask for all rows of an axis, or one for each."""
    for shape in ((2, 3, 4), (2, 1, 4), (4,)):
        mask = jax.random.bernoulli(jax.random.key(1), 0.5, shape)
        expected = np.sum(np.asarray(ROWS) * np.broadcast_to(mask, (2, 3, 4))[..., None], axis=2)
        np.testing.assert_allclose(masked_sum(ROWS, mask), expected, atol=1e-6)


def test_a_bounded_sum_of_more_rows_is_so_many_times_their_mean():
    everything = jnp.ones((2, 3, 4), bool)
    np.testing.assert_allclose(bounded_sum(ROWS, everything, 2), 2 * jnp.mean(ROWS, axis=2), atol=1e-6)
    np.testing.assert_allclose(bounded_sum(ROWS, everything, None), jnp.sum(ROWS, axis=2), atol=1e-6)
    one = everything.at[..., 1:].set(False)
    np.testing.assert_allclose(bounded_sum(ROWS, one, 2), ROWS[:, :, 0], atol=1e-6)
