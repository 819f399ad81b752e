"""Small functions over trees of arrays."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

Tree = TypeVar("Tree")


def select(condition: Bool[Array, "*batch"], yes: Tree, no: Tree) -> Tree:
    """Choose between two trees, row by row where the condition has rows."""

    def pick(a: Array, b: Array) -> Array:
        shape = condition.shape + (1,) * (a.ndim - condition.ndim)
        return jnp.where(condition.reshape(shape), a, b)

    return jax.tree.map(pick, yes, no)


def zeros_like(shapes: Any) -> Any:
    """Zeros in the shapes that `jax.eval_shape` tells."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
