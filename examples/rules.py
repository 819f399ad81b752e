"""Rules that allocate by distance, for any task whose relations tell one."""

import jax.numpy as jnp
from jaxtyping import Array, Float

import alma
from alma.task.view import Allocation

FAR = 1e6


def nearest(view: alma.View, distance: int) -> Allocation:
    """Each agent takes the nearest active subtask. `distance` is the index of the relation that tells it."""
    cost = costs(view, distance)
    return jnp.where(jnp.min(cost, axis=1) < FAR, jnp.argmin(cost, axis=1), alma.NOBODY)


def closest_first(view: alma.View, distance: int) -> Allocation:
    """Of all agents and subtasks that are free, the closest two are allocated to each other, and so on.

    Agents that are left without a subtask take the nearest one.
    """
    allocation, cost = nearest(view, distance), costs(view, distance)
    agents, subtasks = cost.shape
    for _ in range(min(agents, subtasks)):
        agent, subtask = jnp.divmod(jnp.argmin(cost), subtasks)
        free = cost[agent, subtask] < FAR
        allocation = allocation.at[agent].set(jnp.where(free, subtask, allocation[agent]))
        cost = cost.at[agent].set(FAR).at[:, subtask].set(FAR)
    return allocation


def together(view: alma.View, distance: int) -> Allocation:
    """The whole team takes the subtask to which it has the shortest way in all."""
    cost = costs(view, distance)
    present = view.present[: len(cost)]
    total = jnp.sum(jnp.where(present[:, None], cost, 0), axis=0)
    return jnp.where(present & jnp.any(view.active), jnp.argmin(total), alma.NOBODY)


def costs(view: alma.View, distance: int) -> Float[Array, "A M"]:
    """The distance from every agent to the nearest entity of every subtask; `FAR` where there is none."""
    agents, subtasks = view.available.shape[0], view.active.shape[0]
    belongs = (view.subtask[:, None] == jnp.arange(subtasks)) & view.present[:, None] & view.active
    there = view.present[:agents, None, None] & belongs
    return jnp.min(jnp.where(there, view.relations[:, :, distance, None], FAR), axis=1)
