"""Attention masks: which entities each agent may attend to under an allocation."""

import jax
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
