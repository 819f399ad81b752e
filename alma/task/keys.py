"""Random keys as the integers that they are made of, to compare, store and send them like other arrays."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def keys_as_integers(tree: Any) -> Any:
    """The tree with random keys replaced by their integers; other arrays stay."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, tree)


def integers_as_keys(tree: Any, like: Tree) -> Tree:
    """The inverse of `keys_as_integers`: `like` has random keys where the result has them."""
    return jax.tree.map(lambda leaf, a_like: jax.random.wrap_key_data(leaf) if _is_key(a_like) else leaf, tree, like)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
