"""Random initial states of battles: teams, armies and positions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.tasks.starcraft import combat
from alma.tasks.starcraft.combat import NOTHING, Orders, Units
from alma.tasks.starcraft.dynamics import State, battle_status, switch_armies
from alma.tasks.starcraft.rules import Rules
from alma.tasks.starcraft.units import ENERGY_START

SPREAD_LOOPS = 40
"""Loops in which overlapping units push each other apart before the game begins."""


def draw_battle(rules: Rules, key: PRNGKeyArray) -> State:
    """Draw the initial state of a battle, in which at least one army attacks already."""
    *keys, switch_key = jax.random.split(key, 9)
    team = jax.random.randint(keys[0], (), 0, len(rules.teams))
    ours = _fill_slots(keys[1], jnp.asarray(rules.teams)[team], rules.max_agents)
    theirs = _fill_slots(keys[2], jnp.asarray(rules.enemy_teams)[team], rules.max_enemies)
    army, exists = _draw_armies(rules, keys[3], theirs >= 0)
    start = _army_starts(rules, keys[4], jnp.sum(exists))
    kind = jnp.concatenate([ours, theirs])
    position = _start_positions(rules, keys[5], kind, army, start)
    timer = jax.random.randint(keys[6], exists.shape, 0, rules.first_attack)
    earliest = jnp.min(jnp.where(exists, timer, rules.first_attack))
    state = State(
        units=_fresh_units(rules, kind, position),
        army=army.astype(jnp.int8),
        start=start,
        attacking=jnp.zeros_like(exists),
        timer=(timer - earliest).astype(jnp.int8),
        since_switch=jnp.zeros(exists.shape, jnp.int8),
        settled=theirs >= 0,
        moved=jnp.zeros((len(kind), 2), jnp.float16),
        order=jax.random.permutation(keys[7], rules.max_agents).astype(jnp.int8),
        time=jnp.int16(0),
    )
    return switch_armies(rules, switch_key, state, battle_status(rules, state))


def _fill_slots(key: PRNGKeyArray, counts: Int[Array, "T"], slots: int) -> Int[Array, "slots"]:
    """Types of the units in each slot: `counts` of each type in random order, -1 in empty slots."""
    filled = jnp.cumsum(counts)  # slots filled up to and with each type, before they are shuffled
    kind = jnp.searchsorted(filled, jnp.arange(slots), side="right")
    return jax.random.permutation(key, jnp.where(jnp.arange(slots) < filled[-1], kind, -1)).astype(jnp.int8)


def _draw_armies(
    rules: Rules, key: PRNGKeyArray, present: Bool[Array, "K"]
) -> tuple[Int[Array, "K"], Bool[Array, "M"]]:
    """Divide the enemies among armies: draw the number of armies, then their sizes one by one.

    Returns the army of each enemy, -1 for empty slots, and which armies exist.
    """
    number_key, size_key, shuffle_key = jax.random.split(key, 3)
    total, most = jnp.sum(present), rules.max_army_size
    fewest_armies = jnp.maximum(2, -(-total // most))
    armies = _between(number_key, fewest_armies, jnp.minimum(total, rules.max_armies))
    assigned, left = [], total  # enemies assigned up to and with each army
    for i, one_key in enumerate(jax.random.split(size_key, rules.max_armies)):
        later = jnp.maximum(armies - i - 1, 0)
        size = _between(one_key, jnp.maximum(1, left - most * later), jnp.minimum(most, left - later))
        size = jnp.where(i < armies, size, 0)
        left -= size
        assigned.append(total - left)
    # Shuffled once more, so that armies are independent of types even if slots should not be in random order.
    rank = jnp.argsort(jnp.argsort(jnp.where(present, jax.random.uniform(shuffle_key, present.shape), 2)))
    army = jnp.searchsorted(jnp.stack(assigned), rank, side="right")
    return jnp.where(present, army, -1), jnp.arange(rules.max_armies) < armies


def _between(key: PRNGKeyArray, low: Int[Array, ""], high: Int[Array, ""]) -> Int[Array, ""]:
    return jax.random.randint(key, (), low, jnp.maximum(high, low) + 1)


def _army_starts(rules: Rules, key: PRNGKeyArray, armies: Int[Array, ""]) -> Float[Array, "M 2"]:
    """The starting points of armies: evenly spaced around the base, nearer to each other if the spread is below 1."""
    turn_key, spread_key = jax.random.split(key)
    spread = jax.random.uniform(
        spread_key, (rules.max_armies,), minval=rules.spread_range[0], maxval=rules.spread_range[1]
    )
    if rules.one_spread is not None:
        spread = spread.at[armies - 1].set(rules.one_spread)
    turn = 2 * jnp.pi * jax.random.uniform(turn_key)
    angle = turn + spread * 2 * jnp.pi * jnp.arange(rules.max_armies) / jnp.maximum(armies, 1)
    return rules.map_size / 2 + rules.army_distance * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def _start_positions(
    rules: Rules, key: PRNGKeyArray, kind: Int[Array, "N"], army: Int[Array, "K"], start: Float[Array, "M 2"]
) -> Float[Array, "N 2"]:
    """Starting positions: our units around the base, with an offset per type; enemies around their army's starting
    point; without overlaps."""
    type_key, scatter_key = jax.random.split(key)
    side = jax.random.uniform(type_key, (len(rules.types), 2), minval=-1, maxval=1)
    ours = rules.map_size / 2 + side[kind[: rules.max_agents]]
    about = jnp.concatenate([ours, start[army]])
    scattered = about + jax.random.uniform(scatter_key, about.shape, minval=-0.5, maxval=0.5)
    units = combat.unpack(_fresh_units(rules, kind, scattered))
    no = jnp.zeros(len(kind), bool)
    facts = combat.gather_facts(rules.table, units, Orders(units.x, units.y, no, no, no, no))

    def spread(units: Units, _: None) -> tuple[Units, None]:
        push_x, push_y = combat.separation_push(facts, units, combat.pairwise_offsets(units))
        return replace(units, x=units.x + push_x, y=units.y + push_y), None

    return jax.lax.scan(spread, units, length=SPREAD_LOOPS)[0].position


def _fresh_units(rules: Rules, kind: Int[Array, "N"], position: Float[Array, "N 2"]) -> Units:
    exists, at = kind >= 0, jnp.maximum(kind, 0)
    zero = jnp.zeros(len(kind))
    return combat.pack(
        Units(
            kind=kind,
            x=jnp.where(exists, position[:, 0], 0),
            y=jnp.where(exists, position[:, 1], 0),
            health=jnp.where(exists, jnp.asarray(rules.table.health)[at], 0),
            shield=jnp.where(exists, jnp.asarray(rules.table.shield)[at], 0),
            energy=jnp.where(exists & (jnp.asarray(rules.table.heals)[at] > 0), ENERGY_START, 0),
            speed=zero,
            cooldown=zero,
            target=jnp.full(len(kind), NOTHING),
            hit_in=zero,
            hit_target=jnp.full(len(kind), NOTHING),
            since_damage=zero,
        )
    )
