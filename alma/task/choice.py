"""Random choices under a mask."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


def choose_uniformly(key: PRNGKeyArray, allowed: Bool[Array, "*batch N"]) -> Int[Array, "*batch"]:
    """The index of one allowed item a row, each with equal chance; -1 where a row allows none.

    One draw a row: cheaper than a categorical, which takes one for every item.
    """
    count = jnp.sum(allowed, axis=-1)
    draw = jax.random.uniform(key, count.shape)
    nth = jnp.minimum(jnp.floor(draw * count).astype(jnp.int32), count - 1)
    choice = jnp.argmax(jnp.cumsum(allowed, axis=-1) > nth[..., None], axis=-1)
    return jnp.where(count > 0, choice, -1)


def choose_by_logits(draw: Float[Array, "*batch"], logits: Float[Array, "*batch N"]) -> Int[Array, "*batch"]:
    """An index a row with the probabilities of a softmax, given one draw from [0, 1) a row.

    Random numbers are what a categorical spends its time on: this takes one where it takes N.
    """
    ladder = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
    return jnp.argmax(ladder > draw[..., None] * ladder[..., -1:], axis=-1)
