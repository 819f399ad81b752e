"""Who may look at whom under an allocation, and at what."""

from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from alma.task.view import View, subtask_of_entities


def allocation_matrix(allocation: Int[Array, "*b A"], subtasks: int) -> Float[Array, "*b A M"]:
    """The allocation as ones and zeros; a row of zeros for nobody."""
    return jax.nn.one_hot(allocation, subtasks)


def look_at(features: tuple[int, ...], view: View) -> View:
    """A view with some of the features only."""
    if len(features) == view.entities.shape[-1]:
        return view
    return replace(view, entities=view.entities[..., np.array(features)])


def same_subtask(view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A E"]:
    """ALMA's mask: what is present and of an agent's own subtask, for agents that are present themselves."""
    subtask = subtask_of_entities(view, allocation)
    shared = (allocation[..., :, None] == subtask[..., None, :]) & (allocation[..., :, None] >= 0)
    return shared & all_present(view)


def all_present(view: View) -> Bool[Array, "*b A E"]:
    """No mask but presence, of agents and of what they look at."""
    agents = view.visible.shape[-2]
    return view.present[..., None, :] & view.present[..., :agents, None]
