"""Masks: which entities each agent may attend to under an allocation, and sums over what a mask leaves."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.task.view import View, subtask_of_entities


def allocation_matrix(allocation: Int[Array, "*b A"], subtasks: int) -> Float[Array, "*b A M"]:
    """The allocation one-hot over subtasks; a row of zeros for `NOBODY`."""
    return jax.nn.one_hot(allocation, subtasks)


def same_subtask(view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A E"]:
    """ALMA's mask: a present agent attends to the present entities of its own subtask."""
    subtask = subtask_of_entities(view, allocation)
    shared = (allocation[..., :, None] == subtask[..., None, :]) & (allocation[..., :, None] >= 0)
    return shared & all_present(view)


def all_present(view: View) -> Bool[Array, "*b A E"]:
    """The mask without subtasks: every present agent attends to every present entity."""
    agents = view.visible.shape[-2]
    return view.present[..., None, :] & view.present[..., :agents, None]


def masked_sum(rows: Float[Array, "*b N H"], mask: Array) -> Float[Array, "*b H"]:
    """The sum of the rows that a mask keeps; leading axes of the mask may have length 1.

    As a product, since XLA joins a sum with what its rows are computed from to one loop, which is slow on CPU.
    """
    weights = jnp.broadcast_to(mask[..., None, :], (*rows.shape[:-2], 1, rows.shape[-2])).astype(rows.dtype)
    return (weights @ rows)[..., 0, :]


def bounded_sum(rows: Float[Array, "*b N H"], mask: Bool[Array, "*b N"], most: int | None) -> Float[Array, "*b H"]:
    """The sum of the rows that the mask keeps; of more than `most` rows, `most` times their mean.

    A network that has learned from sums over a few rows meets sums outside of everything it has seen when it is used
    on larger problems. Bounded ones stay within.
    """
    return masked_sum(rows, mask) * bound(mask, most)


def bound(mask: Array, most: int | None) -> Float[Array, "*b 1"]:
    """The factor that makes a sum over the rows of a mask one over at most `most` of them; 1 for smaller problems."""
    if most is None or mask.shape[-1] <= most:
        return jnp.ones((*mask.shape[:-1], 1))
    return most / jnp.maximum(jnp.sum(mask, axis=-1, keepdims=True), most)
