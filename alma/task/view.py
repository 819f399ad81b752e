"""What learners see of a state: `View`, and functions of views and allocations."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

NOBODY = -1
"""In place of a subtask: the agent is not allocated, or the entity belongs to no subtask."""

Allocation: TypeAlias = Int[Array | np.ndarray, "A"]
"""The subtask of every agent; `NOBODY` for absent agents and agents without a subtask."""

Actions: TypeAlias = Int[Array, "A"]
"""The action of every agent."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class View:
    """What can be seen of a state; the only input of networks."""

    entities: Float[Array, "E F"]
    """Features of the entities; zeros for absent ones."""
    present: Bool[Array, "E"]
    """False for padding and for dead entities, which are masked everywhere."""
    visible: Bool[Array, "A E"]
    """Which entities an agent may observe."""
    subtask: Int[Array, "E"]
    """The subtask that a non-agent entity belongs to; `NOBODY` for agents (see the allocation) and absent entities."""
    active: Bool[Array, "M"]
    """Subtasks that are present and not yet finished."""
    available: Bool[Array, "A U"]
    """Available actions; all False for absent agents."""
    target: Int[Array, "A U"]
    """Index of the entity that an action is aimed at; -1 if it has no target."""
    relations: Float[Array, "A E R"]
    """Features of an entity relative to an agent (offset, distance, in reach, ...); zeros where either is absent."""


def select_features(view: View, features: tuple[int, ...]) -> View:
    """The view with only the entity features of these indices."""
    if len(features) == view.entities.shape[-1]:
        return view
    return replace(view, entities=view.entities[..., np.array(features)])


def subtask_of_entities(view: View, allocation: Int[Array | np.ndarray, "*b A"]) -> Int[Array, "*b E"]:
    """The subtask of every entity; that of agents comes from the allocation. Leading axes are batch axes."""
    rest = view.subtask[..., allocation.shape[-1] :].astype(allocation.dtype)
    return jnp.concatenate([allocation, rest], axis=-1)


def available_under(view: View, allocation: Int[Array | np.ndarray, "*b A"]) -> Bool[Array, "*b A U"]:
    """Available actions without those aimed at an entity of another subtask.

    For tasks with `TaskSpec.mask_subtask_actions`. Actions without a target are not affected.
    """
    subtask = subtask_of_entities(view, allocation)[..., None, :]
    target_subtask = jnp.take_along_axis(subtask, view.target, axis=-1)
    aimed_elsewhere = (view.target >= 0) & (target_subtask != allocation[..., None])
    return view.available & ~aimed_elsewhere


def team_size(view: View, agents: int) -> Int[Array, ""]:
    """Number of agents present."""
    return jnp.sum(view.present[:agents])
