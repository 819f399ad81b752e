"""The view of a city: features of entities, and relations between agents and entities."""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from alma.task.view import NOBODY, View
from alma.tasks.save_the_city.dynamics import State, available_actions, next_to_building, offsets
from alma.tasks.save_the_city.rules import Action, AgentType, BuildingType, Rules

NEAR = 3
"""Offsets up to this many cells are one-hot relations; larger ones are clipped."""

RELATIONS = (
    "east",
    "north",
    "distance",
    "adjacent",
    "steps to reach",
    *(f"east {cells:+d}" for cells in range(-NEAR, NEAR + 1)),
    *(f"north {cells:+d}" for cells in range(-NEAR, NEAR + 1)),
)


def feature_names(rules: Rules) -> tuple[str, ...]:
    """Names of the features, in the order in which `_entities` puts their columns: type and place, then available
    actions, then what `_building_features` knows of a building."""
    return (
        *(f"{kind.name.lower()} building" for kind in BuildingType),
        *(kind.name.lower() for kind in AgentType),
        *place_names(rules),
        *(f"can {action.name.lower().replace('_', ' ')}" for action in Action),
        "health",
        "complete",
        "burned down",
        "fire",
        "on fire",
        "time since last fire",
        "fire frequency",
    )


def place_names(rules: Rules) -> tuple[str, ...]:
    size = range(rules.grid_size)
    return (*(f"x = {x}" for x in size), *(f"y = {y}" for y in size), "x", "y")


def view(rules: Rules, state: State) -> View:
    """The view of a state; all present entities are visible to all agents."""
    agents, buildings = rules.max_agents, rules.max_buildings
    available = available_actions(rules, state)
    return View(
        entities=_entities(rules, state, available),
        present=state.present,
        visible=state.agent_present[:, None] & state.present[None, :],
        subtask=jnp.concatenate(
            [jnp.full(agents, NOBODY), jnp.where(state.building_present, np.arange(buildings), NOBODY)]
        ),
        active=state.unfinished,
        available=available,
        target=_targets(state, available),
        relations=_relations(rules, state),
    )


def _entities(rules: Rules, state: State, available: Bool[Array, "A 12"]) -> Float[Array, "E F"]:
    """The features of all entities; `feature_names` names the columns."""
    kind = jnp.concatenate([state.agent_type + len(BuildingType), state.building_type]).astype(jnp.int32)
    x, y = state.position[:, 0].astype(jnp.int32), state.position[:, 1].astype(jnp.int32)
    cell = jnp.where(state.present, (kind * rules.grid_size + x) * rules.grid_size + y, -1)
    what_and_where = jnp.asarray(_place_table(rules))[cell]
    work = jnp.where(state.building_present[:, None], _building_features(rules, state), 0)
    can = jnp.pad(available.astype(jnp.float32), ((0, rules.max_buildings), (0, 0)))
    return jnp.concatenate([what_and_where, can, jnp.pad(work, ((rules.max_agents, 0), (0, 0)))], axis=1)


@lru_cache
def _place_table(rules: Rules) -> np.ndarray:
    """Features of each entity type in each cell, (types * grid * grid + 1) x features; the last row is for absent ones.

    Looking up rows is several times faster than computing these features, which would be most of the cost of a view.
    """
    size, types = rules.grid_size, len(BuildingType) + len(AgentType)
    kind, x, y = (axis.ravel() for axis in np.meshgrid(np.arange(types), *[np.arange(size)] * 2, indexing="ij"))
    columns = [np.eye(types)[kind], np.eye(size)[x], np.eye(size)[y], x[:, None] / size, y[:, None] / size]
    return _with_zero_row(columns)


def _with_zero_row(columns: list[np.ndarray]) -> np.ndarray:
    table = np.concatenate(columns, axis=1)
    return np.pad(table, ((0, 1), (0, 0))).astype(np.float32)


def _building_features(rules: Rules, state: State) -> Float[Array, "B 7"]:
    """The features of buildings alone, from health to fire frequency."""
    interval = jnp.maximum(state.fire_interval, 1)
    # The frequency is scaled to 1 for the shortest possible interval and 0 for the longest.
    shortest = min(*rules.fast_interval, *rules.slow_interval)
    longest = max(*rules.fast_interval, *rules.slow_interval)
    span = 1 / shortest - 1 / longest if shortest < longest else 1
    # The timers of finished buildings have stopped, and their values mean nothing.
    since_fire = jnp.where(state.unfinished, state.fire_interval - state.fire_timer, 0)
    columns = [
        state.health,
        state.complete,
        state.burned_down,
        state.fire,
        state.burning,
        since_fire / interval,
        (1 / interval - 1 / longest) / span,
    ]
    return jnp.stack([column.astype(jnp.float32) for column in columns], axis=1)


def _targets(state: State, available: Bool[Array, "A 12"]) -> Int[Array, "A 12"]:
    """The target of work is the building next to the agent; moves have no target."""
    agents = state.agent_type.shape[0]
    entity = np.arange(state.building_type.shape[0]) + agents
    beside = jnp.sum(jnp.where(next_to_building(state), entity, 0), axis=1, keepdims=True)
    is_work = np.isin(list(Action), [Action.FIGHT, Action.BUILD, Action.FREEZE])
    return jnp.where(available & is_work, beside, -1)


def _relations(rules: Rules, state: State) -> Float[Array, "A E R"]:
    """Relations of agents to entities, which depend only on the offset and the agent's speed and so are looked up."""
    reach = rules.grid_size - 1
    offset = offsets(state).astype(jnp.int32) + reach
    fast = (state.agent_type == AgentType.GENERALIST).astype(jnp.int32)[:, None]
    row = (fast * (2 * reach + 1) + offset[..., 0]) * (2 * reach + 1) + offset[..., 1]
    both = state.agent_present[:, None] & state.present[None, :]
    return jnp.asarray(_relation_table(rules))[jnp.where(both, row, -1)]


@lru_cache
def _relation_table(rules: Rules) -> np.ndarray:
    """Relations for each speed (1, 2), offset to the east and offset to the north; the last row is for absent ones."""
    size = rules.grid_size
    axis = np.arange(1 - size, size)
    speed, east, north = (a.reshape(-1, 1) for a in np.meshgrid([1, 2], axis, axis, indexing="ij"))
    distance = np.abs(east) + np.abs(north)
    steps = -(-np.maximum(distance - 1, 0) // speed)
    cells = np.arange(-NEAR, NEAR + 1)
    columns = [east / size, north / size, distance / (2 * size), distance == 1, steps / size]
    return _with_zero_row(columns + [np.clip(offset, -NEAR, NEAR) == cells for offset in (east, north)])
