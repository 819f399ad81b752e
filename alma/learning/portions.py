"""Large batches in portions: what is computed for one portion fits into the caches of a processor."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def portions_of(tree: Tree, size: int, axis: int = 0) -> Tree | None:
    """The rows of a batch, which lie along this axis, as portions along a new first axis.

    None if the batch is not larger than a portion, or not a multiple of it.
    """
    rows = jax.tree.leaves(tree)[0].shape[axis]
    if rows <= size or rows % size:
        return None

    def split(leaf: jax.Array) -> jax.Array:
        return jnp.moveaxis(leaf.reshape(*leaf.shape[:axis], -1, size, *leaf.shape[axis + 1 :]), axis, 0)

    return jax.tree.map(split, tree)


def map_portions(function: Callable[[Any], Tree], batch: Any, size: int, axis: int = 0) -> Tree:
    """The results of a function that treats all rows of a batch alike and apart, computed in portions.

    Rows lie along `axis` in the batch and along the first axis in the results.
    """
    portions = portions_of(batch, size, axis)
    if portions is None:
        return function(batch)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), jax.lax.map(function, portions))


def sum_portions(function: Callable[[Any], Tree], batch: Any, size: int) -> Tree:
    """The sum over all portions of a batch of what the function returns for each."""
    portions = portions_of(batch, size)
    if portions is None:
        return function(batch)
    zeros = jax.tree.map(
        lambda part: jnp.zeros(part.shape, part.dtype),
        jax.eval_shape(function, jax.tree.map(lambda leaf: leaf[0], portions)),
    )
    return jax.lax.scan(lambda total, part: (jax.tree.map(jnp.add, total, function(part)), None), zeros, portions)[0]
