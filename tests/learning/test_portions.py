"""Batches in portions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alma.learning.portions import map_portions, sum_portions

BATCH = {"rows": jnp.arange(12.0).reshape(2, 6), "more": jnp.arange(24).reshape(2, 6, 2)}


def over_time(batch):
    """For every row, a number and a vector."""
    return jnp.sum(batch["rows"], axis=0), jnp.max(batch["more"], axis=0)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 10])
def test_results_of_portions_are_in_the_order_of_rows(size):
    """4 does not divide 6, and 10 is more than all: then there is one portion."""
    found, expected = map_portions(over_time, BATCH, size, axis=1), over_time(BATCH)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 10])
def test_sums_of_portions_are_sums_of_all(size):
    rows = {"a": jnp.arange(6.0), "b": jnp.ones((6, 2), jnp.int32)}
    total = sum_portions(lambda batch: jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), batch), rows, size)
    assert float(total["a"]) == 15
    assert total["b"].tolist() == [6, 6]


def test_a_portion_is_no_larger_than_asked_for():
    sizes = []
    map_portions(lambda batch: sizes.append(batch.shape) or batch, jnp.zeros((3, 6)), 2, axis=1)
    assert set(sizes) == {(3, 2)}
