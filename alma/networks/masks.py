"""Who may look at whom under an allocation."""

import jax
from jaxtyping import Array, Bool, Float, Int

from alma.task import View, subtask_of_entities


def allocation_matrix(allocation: Int[Array, "*b A"], subtasks: int) -> Float[Array, "*b A M"]:
    """The allocation as ones and zeros; a row of zeros for nobody."""
    return jax.nn.one_hot(allocation, subtasks)


def same_subtask(view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A E"]:
    """ALMA's mask: an agent attends to what is visible, present, and of its own subtask."""
    subtask = subtask_of_entities(view, allocation)
    shared = (allocation[..., :, None] == subtask[..., None, :]) & (allocation[..., :, None] >= 0)
    return shared & view.visible & view.present[..., None, :]
