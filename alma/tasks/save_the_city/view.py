"""What agents see of a city: everything, as features of entities and as relations between agents and entities."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from alma.task import NOBODY, View
from alma.tasks.save_the_city.dynamics import State, available_actions, next_to_building, offsets
from alma.tasks.save_the_city.rules import Action, AgentType, BuildingType, Rules

NEAR = 3
"""Offsets are given exactly, one-hot, up to this many cells; what is farther looks the same."""

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
    return (
        *(f"{kind.name.lower()} building" for kind in BuildingType),
        *(kind.name.lower() for kind in AgentType),
        *(f"x = {x}" for x in range(rules.grid_size)),
        *(f"y = {y}" for y in range(rules.grid_size)),
        "x",
        "y",
        *(f"can {action.name.lower().replace('_', ' ')}" for action in Action),
        "health",
        "complete",
        "burned down",
        "fire",
        "on fire",
        "time since last fire",
        "fire frequency",
    )


def view(rules: Rules, state: State) -> View:
    """Everything there is to see; nothing is hidden in this task."""
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
    kind = jnp.concatenate([state.agent_type + len(BuildingType), state.building_type])
    cells = np.arange(rules.grid_size)
    x, y = state.position[:, :1], state.position[:, 1:]
    common = [kind[:, None] == np.arange(len(BuildingType) + len(AgentType)), x == cells, y == cells]
    common += [x / rules.grid_size, y / rules.grid_size]
    work = _building_features(rules, state)
    for_agents = jnp.pad(available, ((0, rules.max_buildings), (0, 0)))
    for_buildings = jnp.pad(work, ((rules.max_agents, 0), (0, 0)))
    features = jnp.concatenate([part.astype(jnp.float32) for part in [*common, for_agents, for_buildings]], axis=1)
    return jnp.where(state.present[:, None], features, 0)


def _building_features(rules: Rules, state: State) -> Float[Array, "B 7"]:
    interval = jnp.maximum(state.fire_interval, 1)
    # The frequency is 1 for the shortest interval of the game and 0 for the longest.
    shortest = min(*rules.fast_interval, *rules.slow_interval)
    longest = max(*rules.fast_interval, *rules.slow_interval)
    span = 1 / shortest - 1 / longest if shortest < longest else 1
    columns = [
        state.health,
        state.complete,
        state.burned_down,
        state.fire,
        state.burning,
        (state.fire_interval - state.fire_timer) / interval,
        (1 / interval - 1 / longest) / span,
    ]
    return jnp.stack([column.astype(jnp.float32) for column in columns], axis=1)


def _targets(state: State, available: Bool[Array, "A 12"]) -> Int[Array, "A 12"]:
    """Work is aimed at the building next to the agent; moves are aimed at nothing."""
    agents = state.agent_type.shape[0]
    entity = np.arange(state.building_type.shape[0]) + agents
    beside = jnp.sum(jnp.where(next_to_building(state), entity, 0), axis=1, keepdims=True)
    is_work = np.isin(list(Action), [Action.FIGHT, Action.BUILD, Action.FREEZE])
    return jnp.where(available & is_work, beside, -1)


def _relations(rules: Rules, state: State) -> Float[Array, "A E R"]:
    offset = offsets(state)
    distance = jnp.sum(jnp.abs(offset), axis=-1, keepdims=True)
    speed = jnp.where(state.agent_type == AgentType.GENERALIST, 2, 1)[:, None, None]
    steps = jnp.maximum(distance - 1 + speed - 1, 0) // speed
    near = jnp.clip(offset, -NEAR, NEAR)
    cells = np.arange(-NEAR, NEAR + 1)
    columns = [
        offset / rules.grid_size,
        distance / (2 * rules.grid_size),
        distance == 1,
        steps / rules.grid_size,
        near[..., :1] == cells,
        near[..., 1:] == cells,
    ]
    relations = jnp.concatenate([column.astype(jnp.float32) for column in columns], axis=-1)
    both = state.agent_present[:, None] & state.present[None, :]
    return jnp.where(both[:, :, None], relations, 0)
