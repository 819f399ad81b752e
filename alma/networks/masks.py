"""Who may look at whom under an allocation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.task import View


def allocation_matrix(allocation: Int[Array, "*b A"], subtasks: int) -> Float[Array, "*b A M"]:
    """The allocation as ones and zeros; a row of zeros for nobody."""
    return jax.nn.one_hot(allocation, subtasks)


def entity_subtasks(view: View, allocation: Int[Array, "*b A"]) -> Int[Array, "*b E"]:
    """The subtask of every entity, the agents' taken from the allocation; batches allowed."""
    rest = view.subtask[..., allocation.shape[-1] :].astype(allocation.dtype)
    return jnp.concatenate([allocation, rest], axis=-1)


def same_subtask(view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A E"]:
    """ALMA's mask: an agent attends to what is visible, present, and of its own subtask."""
    subtask = entity_subtasks(view, allocation)
    shared = (allocation[..., :, None] == subtask[..., None, :]) & (allocation[..., :, None] >= 0)
    return shared & view.visible & view.present[..., None, :]
