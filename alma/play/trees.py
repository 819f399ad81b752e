"""Helpers for pytrees of arrays."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

Tree = TypeVar("Tree")


def select(condition: Bool[Array, "*batch"], yes: Tree, no: Tree) -> Tree:
    """`jnp.where` over pytrees; the condition is broadcast over the trailing axes of each leaf."""

    def pick(a: Array, b: Array) -> Array:
        shape = condition.shape + (1,) * (a.ndim - condition.ndim)
        return jnp.where(condition.reshape(shape), a, b)

    return jax.tree.map(pick, yes, no)


def zeros_like(shapes: Any) -> Any:
    """Zeros with the shapes and dtypes returned by `jax.eval_shape`."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
