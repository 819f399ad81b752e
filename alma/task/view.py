"""The contract between tasks and learners: everything a learner may know of an environment.

A *composite task* is a job made of several subtasks that run at once. A task is a handful of pure
functions over a small state; a learner sees the state only through a `View`. Sizes are static, counts
vary by masks, and masks are positive (True means yes). Shapes are written with these letters:

    A agents    E entities (the agents first, then the rest)    M subtasks    U actions
    F features of an entity    R relations between an agent and an entity

`alma.check_task` holds a task to all of this.
"""

from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

NOBODY = -1
"""The subtask of an agent that is allocated nowhere, and of an entity that belongs to none."""

Allocation: TypeAlias = Int[Array | np.ndarray, "A"]
"""The subtask of every agent; `NOBODY` for absent agents and agents without a subtask."""

Actions: TypeAlias = Int[Array, "A"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class View:
    """What there is to see in a state; the only thing networks are given."""

    entities: Float[Array, "E F"]
    """Features; zeros where absent."""
    present: Bool[Array, "E"]
    """False for padding and for the dead: masked everywhere."""
    visible: Bool[Array, "A E"]
    """Which entities an agent may observe."""
    subtask: Int[Array, "E"]
    """The subtask a non-agent entity belongs to; `NOBODY` for agents (the allocation says) and the absent."""
    active: Bool[Array, "M"]
    """Subtasks that are present and not yet finished."""
    available: Bool[Array, "A U"]
    """Available actions; all False for absent agents."""
    target: Int[Array, "A U"]
    """The entity an available action is aimed at, -1 where there is none."""
    relations: Float[Array, "A E R"]
    """What an entity is to an agent (offset, distance, in reach, ...); zeros where either is absent."""


def subtask_of_entities(view: View, allocation: Int[Array | np.ndarray, "*b A"]) -> Int[Array, "*b E"]:
    """The subtask of every entity, the agents' taken from the allocation. Leading axes are batches."""
    rest = view.subtask[..., allocation.shape[-1] :].astype(allocation.dtype)
    return jnp.concatenate([allocation, rest], axis=-1)


def available_under(view: View, allocation: Int[Array | np.ndarray, "*b A"]) -> Bool[Array, "*b A U"]:
    """Available actions when those aimed at an entity of another subtask are ruled out.

    For tasks whose spec says `mask_subtask_actions`; actions without a target always stay.
    """
    subtask = subtask_of_entities(view, allocation)[..., None, :]
    target_subtask = jnp.take_along_axis(subtask, view.target, axis=-1)
    aimed_elsewhere = (view.target >= 0) & (target_subtask != allocation[..., None])
    return view.available & ~aimed_elsewhere


def team_size(view: View, agents: int) -> Int[Array, ""]:
    """How many agents are present."""
    return jnp.sum(view.present[:agents])
