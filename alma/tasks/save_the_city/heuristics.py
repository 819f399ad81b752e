"""Heuristic allocations and a scripted policy, to watch and calibrate the task without learning."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from alma.task.choice import choose_uniformly
from alma.task.view import NOBODY, Actions, Allocation
from alma.tasks.save_the_city.dynamics import DIRECTIONS, MOVES, State, available_actions, next_to_building
from alma.tasks.save_the_city.rules import Action, AgentType, Rules

FAR = 1_000
"""More than any distance on the map."""

WALKS = np.arange(len(Action)) < Action.FIGHT
"""Mask of the actions that move or stay, as opposed to work."""


def nearest_useful(state: State) -> Allocation:
    """Each agent takes the nearest unfinished building where it is useful, or else the nearest one.

    Firefighters and generalists prefer burning buildings, builders those that do not burn.
    """
    offset = state.building_position[None, :, :].astype(jnp.int32) - state.agent_position[:, None, :]
    distance = jnp.sum(jnp.abs(offset), axis=-1)
    prefers_fire = state.agent_type != AgentType.BUILDER
    preferred = prefers_fire[:, None] == state.burning[None, :]
    cost = distance + jnp.where(preferred, 0, FAR)
    return _cheapest(state, cost)


def most_urgent(rules: Rules, state: State) -> Allocation:
    """All agents go to the burning building that a fire of full strength would destroy first.

    Without fires, they go to the building that is most complete.
    """
    burn_rate = jnp.asarray(rules.burn_rate, jnp.float32)[state.building_type]
    cost = jnp.where(state.burning, state.health / jnp.maximum(burn_rate, 1 / FAR), 2 * FAR - state.health)
    return _cheapest(state, jnp.broadcast_to(cost, (len(state.agent_type), len(cost))))


def _cheapest(state: State, cost: Array) -> Allocation:
    unfinished = state.unfinished
    choice = jnp.argmin(jnp.where(unfinished, cost, jnp.inf), axis=1)
    return jnp.where(state.agent_present & jnp.any(unfinished), choice, NOBODY)


def scripted_actions(
    rules: Rules, key: PRNGKeyArray, state: State, allocation: Allocation, stumble: float = 0.05
) -> Actions:
    """Walk to the assigned building and work there.

    While walking, an agent makes a random available move with probability `stumble`, so that agents do not block each
    other.
    """
    stumble_key, move_key = jax.random.split(key)
    available = available_actions(rules, state)
    beside = next_to_building(state)
    assigned = allocation[:, None] == np.arange(len(state.building_type))
    arrived = jnp.any(assigned & beside, axis=1)
    random_move = choose_uniformly(move_key, available & WALKS)
    stumbles = jax.random.uniform(stumble_key, arrived.shape) < stumble
    walk = jnp.where(stumbles, random_move, _walk(rules, state, allocation, available))
    idle = ~state.agent_present | (allocation == NOBODY)
    return jnp.where(idle, Action.STAY, jnp.where(arrived, _work(state, assigned, beside), walk))


def _work(state: State, assigned: Bool[Array, "A B"], beside: Bool[Array, "A B"]) -> Actions:
    """Fight a fire, else build. A generalist freezes a fire, or helps a builder without a firefighter to fight it."""
    there = assigned & beside
    burns = jnp.any(there & state.burning, axis=1)

    def has(kind: AgentType) -> Bool[Array, "B"]:
        return jnp.any(beside & (state.agent_type == kind)[:, None], axis=0)

    helps = jnp.any(there & has(AgentType.BUILDER) & ~has(AgentType.FIREFIGHTER), axis=1)
    freezes = (state.agent_type == AgentType.GENERALIST) & ~helps
    at_fire = jnp.where(freezes, Action.FREEZE, Action.FIGHT)
    return jnp.where(burns, at_fire, Action.BUILD)


def _walk(rules: Rules, state: State, allocation: Allocation, available: Bool[Array, "A 12"]) -> Int[Array, "A"]:
    """The available move that ends nearest to a free cell next to the assigned building.

    Among equally good moves, those along the axis of the longer distance come first: an agent with distance left along
    both axes can walk around obstacles instead of stopping in front of them.
    """
    goal = state.building_position[allocation].astype(jnp.int32)
    goal_cells = goal[:, None, :] + DIRECTIONS
    taken = jnp.all(goal_cells[:, :, None, :] == state.agent_position[None, None, :, :], axis=-1)
    free = ~jnp.any(taken & state.agent_present, axis=-1)
    destination = state.agent_position[:, None, :].astype(jnp.int32) + MOVES
    distance = jnp.sum(jnp.abs(goal_cells[:, None, :, :] - destination[:, :, None, :]), axis=-1)
    nearest = jnp.min(jnp.where(free[:, None, :], distance, FAR), axis=-1)

    way = jnp.abs(goal - state.agent_position)
    longer_way = jnp.where((way[:, 0] >= way[:, 1])[:, None], MOVES[:, 0] != 0, MOVES[:, 1] != 0)
    # With every cell taken there is nowhere to go: all moves cost the same, and the first one is to stay.
    cost = jnp.where(jnp.any(free, axis=1, keepdims=True), 2 * nearest - longer_way, 0)
    return jnp.argmin(jnp.where(available & WALKS, cost, 4 * FAR), axis=1)
