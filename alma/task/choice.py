"""Random choices: uniform under a mask, and by logits."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


def choose_uniformly(key: PRNGKeyArray, allowed: Bool[Array, "*batch N"]) -> Int[Array, "*batch"]:
    """Draw the index of one allowed item per row, uniformly; -1 if a row allows none.

    Needs one random number per row; `jax.random.categorical` needs one per item.
    """
    count = jnp.sum(allowed, axis=-1)
    draw = jax.random.uniform(key, count.shape)
    nth = jnp.minimum(jnp.floor(draw * count).astype(jnp.int32), count - 1)
    choice = jnp.argmax(jnp.cumsum(allowed, axis=-1) > nth[..., None], axis=-1)
    return jnp.where(count > 0, choice, -1)


def choose_by_logits(draw: Float[Array, "*batch"], logits: Float[Array, "*batch N"]) -> Int[Array, "*batch"]:
    """Draw an index per row with the probabilities of a softmax, from one uniform number in [0, 1) per row.

    `jax.random.categorical` needs N random numbers per row, and generating them is most of its cost.
    """
    ladder = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
    return jnp.argmax(ladder > draw[..., None] * ladder[..., -1:], axis=-1)
