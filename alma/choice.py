"""Random choices under a mask."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray


def choose_uniformly(key: PRNGKeyArray, allowed: Bool[Array, "*batch N"]) -> Int[Array, "*batch"]:
    """The index of one allowed item a row, each with equal chance; -1 where a row allows none.

    One draw a row: cheaper than a categorical, which takes one for every item.
    """
    count = jnp.sum(allowed, axis=-1)
    draw = jax.random.uniform(key, count.shape)
    nth = jnp.minimum(jnp.floor(draw * count).astype(jnp.int32), count - 1)
    choice = jnp.argmax(jnp.cumsum(allowed, axis=-1) > nth[..., None], axis=-1)
    return jnp.where(count > 0, choice, -1)
