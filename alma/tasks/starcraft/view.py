"""The view of a battle: features of units, and relations between agents and units."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from alma.task.view import NOBODY, View
from alma.tasks.starcraft.dynamics import FIRST_TARGET, MOVES, State, battle_status
from alma.tasks.starcraft.rules import Rules
from alma.tasks.starcraft.units import ENERGY_MAX, LEAST_DAMAGE

RELATIONS = (
    "east",
    "north",
    "distance",
    "towards east",
    "towards north",
    "in order range",
    "inside my reach",
    "inside its reach",
    "can hurt",
    "can heal",
    "hits to kill",
    "hits to kill me",
    "base to the east",
    "base to the north",
    "my way to the base",
    "its way to the base",
    "nearer to the base than me",
)

NEAR = 8.0
"""Unit of length of relations, in cells."""
MANY_HITS = 20.0
"""Upper bound of the numbers of hits in relations."""


def action_names(rules: Rules) -> tuple[str, ...]:
    targets = max(rules.max_agents, rules.max_enemies)
    return ("stop", "north", "south", "east", "west", *(f"target {slot}" for slot in range(targets)))


def feature_names(rules: Rules) -> tuple[str, ...]:
    slots = max(rules.max_agents, rules.max_enemies)
    return (
        *(f"slot {slot}" for slot in range(slots)),
        *(f"can {name}" for name in action_names(rules)[1:]),
        *(f"our {kind}" for kind in rules.types),
        *(f"their {kind}" for kind in rules.types),
        "health",
        "shield",
        "energy",
        "cooldown",
        "x",
        "y",
        "x from the middle of all",
        "y from the middle of all",
        "attacking",
        "time since switch",
        "moved east",
        "moved north",
    )


def view(rules: Rules, state: State) -> View:
    """The view of a state. Dead units are absent; agents see units within `rules.sight`."""
    agents, alive = rules.max_agents, state.units.alive
    offset = state.units.position[None, :, :] - state.units.position[:agents, None, :]
    distance = jnp.linalg.norm(offset, axis=-1)
    both = alive[:agents, None] & alive[None, :]
    pairs = pair_facts(rules, state)
    aims = both & (distance <= rules.order_range) & (pairs.hurts | pairs.heals)
    available = _available(rules, state, aims)
    return View(
        entities=jnp.where(alive[:, None], _features(rules, state, available), 0),
        present=alive,
        visible=both & (distance <= rules.sight),
        subtask=jnp.where(alive, jnp.concatenate([jnp.full(agents, NOBODY), state.army]), NOBODY),
        active=battle_status(rules, state).active,
        available=available,
        target=_targets(rules, state, available),
        relations=jnp.where(
            both[..., None],
            jnp.concatenate([_relations(offset, distance, pairs, aims), _base_relations(rules, state)], axis=-1),
            0,
        ),
    )


class PairFacts(NamedTuple):
    """Relations between agents and units that do not depend on positions."""

    hurts: Bool[Array, "A E"]
    """Whether the agent can damage the unit, an enemy."""
    heals: Bool[Array, "A E"]
    """Whether the agent can heal the unit, a team mate."""
    reach: Float[Array, "A E"]
    """Distance within which the agent can hit or heal the unit."""
    its_reach: Float[Array, "A E"]
    """Distance within which the unit can hit or heal the agent; negative if it never can."""
    hits_to_kill: Float[Array, "A E"]
    """Hits by the agent that kill the unit."""
    hits_to_die: Float[Array, "A E"]
    """Hits by the unit that kill the agent."""


def pair_facts(rules: Rules, state: State) -> PairFacts:
    """Compute `PairFacts` from types, health and shields."""
    agents, table, units = rules.max_agents, rules.table, state.units
    kind = jnp.maximum(units.kind, 0)
    foe = np.arange(len(kind)) >= agents
    row, column = kind[:agents, None], kind[None, :]
    itself = np.eye(agents, len(kind), dtype=bool)
    hurts = (jnp.asarray(table.damage)[row, column] > 0) & foe
    heals = jnp.asarray(table.healable)[row, column] & ~foe & ~itself
    hurts_me = (jnp.asarray(table.damage)[column, row] > 0) & foe
    heals_me = jnp.asarray(table.healable)[column, row] & ~foe & ~itself
    reach = jnp.asarray(table.reach)
    left = units.health + units.shield
    net = np.maximum(table.damage - table.armour[None, :], LEAST_DAMAGE)
    return PairFacts(
        hurts=hurts,
        heals=heals,
        reach=reach[row, column],
        its_reach=jnp.where(hurts_me | heals_me, reach[column, row], -1),
        hits_to_kill=jnp.where(hurts, jnp.ceil(left[None, :] / jnp.asarray(net)[row, column]), MANY_HITS),
        hits_to_die=jnp.where(hurts_me, jnp.ceil(left[:agents, None] / jnp.asarray(net)[column, row]), MANY_HITS),
    )


def _available(rules: Rules, state: State, aims: Bool[Array, "A E"]) -> Bool[Array, "A U"]:
    """Available actions: stop, moves that stay on the map, targets in range (enemies; for healers, team mates)."""
    agents, targets = rules.max_agents, max(rules.max_agents, rules.max_enemies)
    alive = state.units.alive[:agents, None]
    ahead = state.units.position[:agents, None, :] + MOVES[None]
    on_map = jnp.all((ahead >= 0) & (ahead <= rules.map_size), axis=-1)
    friends = jnp.pad(aims[:, :agents], ((0, 0), (0, targets - agents)))
    foes = jnp.pad(aims[:, agents:], ((0, 0), (0, targets - rules.max_enemies)))
    return jnp.concatenate([alive, alive & on_map, friends | foes], axis=1)


def _targets(rules: Rules, state: State, available: Bool[Array, "A U"]) -> Int[Array, "A U"]:
    """The entity that each available target action is aimed at."""
    agents, targets = rules.max_agents, max(rules.max_agents, rules.max_enemies)
    heals = jnp.asarray(rules.table.heals)[jnp.maximum(state.units.kind[:agents], 0)] > 0
    entity = np.arange(targets)[None, :] + jnp.where(heals, 0, agents)[:, None]
    moves = jnp.full((agents, FIRST_TARGET), -1)
    return jnp.where(available, jnp.concatenate([moves, entity], axis=1), -1)


def _features(rules: Rules, state: State, available: Bool[Array, "A U"]) -> Float[Array, "E F"]:
    agents, enemies, units = rules.max_agents, rules.max_enemies, state.units
    slots, types = max(agents, enemies), len(rules.types)
    slot = np.eye(slots, dtype=np.float32)[np.concatenate([np.arange(agents), np.arange(enemies)])]
    can = jnp.pad(available[:, 1:].astype(jnp.float32), ((0, enemies), (0, 0)))
    kind = jnp.maximum(units.kind, 0)
    side = np.where(np.arange(agents + enemies) < agents, 0, types)
    what = (kind + side)[:, None] == np.arange(2 * types)
    ours = np.arange(agents + enemies) < agents
    full_shield = jnp.asarray(np.maximum(rules.table.shield, 1))[kind]
    alive = units.alive[:, None]
    middle = jnp.sum(jnp.where(alive, units.position, 0), axis=0) / jnp.maximum(jnp.sum(alive), 1)
    from_middle = jnp.where(alive, units.position - middle, 0)
    widest = jnp.maximum(jnp.max(jnp.linalg.norm(from_middle, axis=-1)), 1e-3)
    army = jnp.concatenate([jnp.zeros(agents, jnp.int8), jnp.maximum(state.army, 0)])
    columns = [
        units.health / jnp.asarray(rules.table.health)[kind],
        units.shield / full_shield,
        jnp.where(ours, units.energy / ENERGY_MAX, 0),
        jnp.where(ours, units.cooldown / jnp.asarray(rules.table.period)[kind], 0),
        *((units.position - rules.map_size / 2) / rules.map_size).T,
        *(from_middle / widest).T,
        jnp.where(ours, 0, state.attacking[army]),
        jnp.where(ours, 0, state.since_switch[army] / 20),
        *(state.moved / 2).T,
    ]
    numbers = jnp.stack([column.astype(jnp.float32) for column in columns], axis=1)
    return jnp.concatenate([slot, can, what.astype(jnp.float32), numbers], axis=1)


def _relations(
    offset: Float[Array, "A E 2"], distance: Float[Array, "A E"], pairs: PairFacts, aims: Bool[Array, "A E"]
) -> Float[Array, "A E R"]:
    towards = offset / jnp.maximum(distance, 1e-3)[..., None]
    return _stack(
        offset[..., 0] / NEAR,
        offset[..., 1] / NEAR,
        distance / NEAR,
        towards[..., 0],
        towards[..., 1],
        aims,
        (pairs.hurts | pairs.heals) & (distance <= pairs.reach),
        distance <= pairs.its_reach,
        pairs.hurts,
        pairs.heals,
        jnp.minimum(pairs.hits_to_kill, MANY_HITS) / MANY_HITS,
        jnp.minimum(pairs.hits_to_die, MANY_HITS) / MANY_HITS,
    )


def _base_relations(rules: Rules, state: State) -> Float[Array, "A E R"]:
    """Relations to the base, which is not an entity itself."""
    offset = rules.map_size / 2 - state.units.position
    its_way = jnp.linalg.norm(offset, axis=-1)[None, :] - rules.base_radius
    my_way = its_way.T[: rules.max_agents]
    everybody = jnp.ones_like(its_way)
    return _stack(
        *(offset[: rules.max_agents].T[..., None] / NEAR * everybody),
        my_way / NEAR * everybody,
        jnp.broadcast_to(its_way / NEAR, (rules.max_agents, its_way.shape[1])),
        its_way < my_way,
    )


def _stack(*columns: Float[Array, "A E"] | Bool[Array, "A E"]) -> Float[Array, "A E R"]:
    return jnp.stack([column.astype(jnp.float32) for column in columns], axis=-1)
