"""Fighting, one game loop at a time. Both sides act at once and under the same laws.

Units are rows of arrays, N of them, ours and theirs alike. What they are told (`Orders`) stays the same for the loops
of a step; whom they shoot at may change.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.tasks.starcraft import units as data
from alma.tasks.starcraft.units import Table

NOTHING = -1
"""No target."""
ACQUISITION = 5.0
"""Units that pick their own targets see this far, or as far as they shoot."""
LEASH = 10.0
"""How far idle units follow."""
HELP = 4.0
"""How far a call for help is heard."""
HEAL_SIGHT = 6.0
"""How far Medivacs that pick their own targets see."""
FORGOTTEN = 1000.0
"""Loops after which it does not matter any more when a unit was hit."""
PUSH = 0.5
"""The share of an overlap that is undone in one loop."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Units:
    """Everything that changes about units."""

    kind: Int[Array, "N"]
    """Row of the table; -1 where there is no unit."""
    position: Float[Array, "N 2"]
    health: Float[Array, "N"]
    """0: dead, or not there."""
    shield: Float[Array, "N"]
    energy: Float[Array, "N"]
    speed: Float[Array, "N"]
    """Cells in a loop, now."""
    cooldown: Float[Array, "N"]
    """Loops to the next shot."""
    target: Int[Array, "N"]
    """Whom a unit attacks or heals."""
    hit_in: Float[Array, "N"]
    """Loops until what a unit shot last hits; 0: nothing is under way. A second hit counts too."""
    hit_target: Int[Array, "N"]
    since_damage: Float[Array, "N"]
    """Loops."""

    @property
    def alive(self) -> Bool[Array, "N"]:
        return self.health > 0


def pack(units: Units) -> Units:
    """Units as they are kept between steps: replay stores them, so that small is good."""
    short = ("energy", "speed", "cooldown", "hit_in", "since_damage")
    changed = {name: getattr(units, name).astype(jnp.float16) for name in short}
    changed |= {name: getattr(units, name).astype(jnp.int8) for name in ("kind", "target", "hit_target")}
    return replace(units, **changed)


def unpack(units: Units) -> Units:
    """Units as they are reckoned with."""
    whole = {jnp.float16: jnp.float32, jnp.int8: jnp.int32}
    return jax.tree.map(lambda leaf: leaf.astype(whole.get(leaf.dtype.type, leaf.dtype)), units)


class Orders(NamedTuple):
    """What units are told for a step."""

    goal: Float[Array, "N 2"]
    """Where to walk, without a target."""
    walks: Bool[Array, "N"]
    """Towards the goal; False: stay."""
    picks: Bool[Array, "N"]
    """Chooses targets by itself."""
    idle: Bool[Array, "N"]
    """Of those that choose: waits, answers attacks and comes to help."""
    ours: Bool[Array, "N"]


class Facts(NamedTuple):
    """What is the same for all loops of a step: the data of every unit, and of every pair."""

    radius: Float[Array, "N"]
    step: Float[Array, "N"]
    acceleration: Float[Array, "N"]
    period: Float[Array, "N"]
    second_hit: Float[Array, "N"]
    bolt_step: Float[Array, "N"]
    heals: Float[Array, "N"]
    armour: Float[Array, "N"]
    max_health: Float[Array, "N"]
    max_shield: Float[Array, "N"]
    damage: Float[Array, "N N"]
    """Of a hit, by attacker and target."""
    reach: Float[Array, "N N"]
    """Distance of centres within which a weapon, or a healer, reaches."""
    apart: Float[Array, "N N"]
    """Distance that two units keep; 0 where they do not collide."""
    sees: Float[Array, "N N"]
    """How far a unit that chooses by itself notices another as a target; negative where it never does."""


def gather_facts(table: Table, units: Units, orders: Orders) -> Facts:
    """Look everything up once."""
    kind, exists = jnp.maximum(units.kind, 0), units.kind >= 0

    def of(column: np.ndarray) -> Float[Array, "N"]:
        return jnp.where(exists, jnp.asarray(column)[kind], 0)

    radius, heals, biological = of(table.radius), of(table.heals), jnp.asarray(table.biological)[kind]
    flying = jnp.asarray(table.flying)[kind]
    damage = jnp.asarray(table.damage)[kind[:, None], kind[None, :]]
    foes = orders.ours[:, None] != orders.ours[None, :]
    other = ~np.eye(len(kind), dtype=bool)
    heal = (heals > 0)[:, None] & (biological & ~flying)[None, :] & ~foes & other
    hurt = (damage > 0) & foes
    sight = jnp.maximum(ACQUISITION, of(table.range))[:, None]
    separation = of(table.separation)
    return Facts(
        radius=radius,
        step=of(table.step),
        acceleration=of(table.acceleration),
        period=of(table.period),
        second_hit=of(table.second_hit),
        bolt_step=of(table.bolt_step),
        heals=heals,
        armour=of(table.armour),
        max_health=of(table.health),
        max_shield=of(table.shield),
        damage=damage,
        reach=of(table.range)[:, None] + radius[:, None] + radius[None, :],
        apart=jnp.where((flying[:, None] == flying[None, :]) & other, separation[:, None] + separation[None, :], 0),
        sees=jnp.where(hurt, sight, jnp.where(heal, HEAL_SIGHT, -1)),
    )


def fight(table: Table, key: PRNGKeyArray, units: Units, orders: Orders, loops: int, map_size: float) -> Units:
    """Let units follow their orders for a number of loops."""
    units = unpack(units)
    facts = gather_facts(table, units, orders)
    jitter = jax.random.uniform(key, (loops, len(units.kind)), minval=data.JITTER[0], maxval=data.JITTER[1])

    def body(units: Units, jitter: Float[Array, "N"]) -> tuple[Units, None]:
        return game_loop(table, facts, units, orders, jitter, map_size), None

    return pack(jax.lax.scan(body, units, jitter)[0])


def game_loop(
    table: Table, facts: Facts, units: Units, orders: Orders, jitter: Float[Array, "N"], map_size: float
) -> Units:
    """One sixteenth of a second."""
    offset = units.position[None, :, :] - units.position[:, None, :]
    distance = jnp.sqrt(jnp.sum(offset**2, axis=-1))
    units = replace(units, target=choose_targets(table, facts, units, orders, distance))
    reached = in_reach(facts, units, distance)
    moved = move(facts, units, orders, offset, distance, reached, map_size)
    shots, hits = shoot(facts, moved, distance, reached, jitter)
    after = regain(facts, take_hits(facts, shots, hits), table)
    if table.heals.any():
        after = heal(facts, after, reached)
    return answer(facts, after, orders, hits, distance)


# ---- whom to attack


def choose_targets(
    table: Table, facts: Facts, units: Units, orders: Orders, distance: Float[Array, "N N"]
) -> Int[Array, "N"]:
    """Targets that are gone are dropped; units that choose by themselves keep theirs while it is near, else take the
    nearest. Healers take the most damaged."""
    at = jnp.maximum(units.target, 0)
    has = (units.target != NOTHING) & units.alive[at] & units.alive
    kept_within = jnp.where(orders.idle, LEASH, _pick(facts.sees, at))
    near = _pick(distance, at) <= kept_within
    noticed = (distance <= facts.sees) & units.alive[None, :]
    preference = distance
    if table.heals.any():
        missing = facts.max_health - units.health
        heals = (facts.heals > 0)[:, None]
        noticed &= ~heals | (missing > 0)[None, :]
        preference = jnp.where(heals, -missing[None, :], distance)
        near &= ~heals[:, 0]  # who heals looks anew every time
    nearest = jnp.argmin(jnp.where(noticed, preference, jnp.inf), axis=1)
    picked = jnp.where(has & near, units.target, jnp.where(jnp.any(noticed, axis=1), nearest, NOTHING))
    return jnp.where(orders.picks & units.alive, picked, jnp.where(has, units.target, NOTHING))


def _pick(matrix: Float[Array, "N N"], column: Int[Array, "N"]) -> Float[Array, "N"]:
    return jnp.take_along_axis(matrix, column[:, None], axis=1)[:, 0]


def in_reach(facts: Facts, units: Units, distance: Float[Array, "N N"]) -> Bool[Array, "N"]:
    """Whether a unit's target is near enough."""
    at = jnp.maximum(units.target, 0)
    return (units.target != NOTHING) & (_pick(distance, at) <= _pick(facts.reach, at))


# ---- where to go


def move(
    facts: Facts,
    units: Units,
    orders: Orders,
    offset: Float[Array, "N N 2"],
    distance: Float[Array, "N N"],
    reached: Bool[Array, "N"],
    map_size: float,
) -> Units:
    """Walk after the target until it is in reach, or to the goal; then make room for each other."""
    hunting = units.target != NOTHING
    goal = jnp.where(hunting[:, None], units.position[jnp.maximum(units.target, 0)], orders.goal)
    walks = units.alive & jnp.where(hunting, ~reached, orders.walks)
    way = goal - units.position
    length = jnp.sqrt(jnp.sum(way**2, axis=-1))
    speed = jnp.where(walks, jnp.minimum(units.speed + facts.acceleration, facts.step), 0)
    walked = way * (jnp.minimum(speed, length) / jnp.maximum(length, 1e-6))[:, None]
    position = units.position + walked + room(facts, units, offset, distance)
    edge = facts.radius[:, None]
    return replace(units, position=jnp.clip(position, edge, map_size - edge), speed=speed)


def room(
    facts: Facts, units: Units, offset: Float[Array, "N N 2"], distance: Float[Array, "N N"]
) -> Float[Array, "N 2"]:
    """Push units apart that overlap, each by half."""
    both = units.alive[:, None] & units.alive[None, :]
    overlap = jnp.where(both, jnp.maximum(facts.apart - distance, 0), 0)
    push = PUSH / 2 * overlap / jnp.maximum(distance, 1e-3)
    return -jnp.sum(push[..., None] * offset, axis=1)


# ---- what happens


def shoot(
    facts: Facts, units: Units, distance: Float[Array, "N N"], reached: Bool[Array, "N"], jitter: Float[Array, "N"]
) -> tuple[Units, Int[Array, "N"]]:
    """Fire where weapons are ready; the answer is also whom each unit hits in this loop.

    A unit has one hit under way at the most: bolts land, and second hits come, before it can shoot again.
    """
    at = jnp.maximum(units.target, 0)
    fires = units.alive & reached & (units.cooldown <= 0) & (_pick(facts.damage, at) > 0)
    flight = jnp.maximum(_pick(distance, at) / jnp.maximum(facts.bolt_step, 1e-6), 1)
    at_once = fires & (facts.bolt_step == 0)
    # Bolts fly on when who shot them is dead; the dead do not hit a second time.
    lands = (units.hit_in > 0) & (units.hit_in <= 1) & (units.alive | (facts.bolt_step > 0))
    hits = jnp.where(at_once, units.target, jnp.where(lands, units.hit_target, NOTHING))
    # Time that is left over from the last shot counts for the next, so that periods hold on the average.
    waited = jnp.where(units.cooldown > 0, units.cooldown - 1, 0)
    under_way = jnp.where(fires, jnp.where(at_once, facts.second_hit, flight), jnp.maximum(units.hit_in - 1, 0))
    return replace(
        units,
        cooldown=jnp.where(fires, units.cooldown + facts.period + jitter - 1, waited),
        hit_in=under_way,
        hit_target=jnp.where(fires, units.target, units.hit_target),
    ), hits


def take_hits(facts: Facts, units: Units, hits: Int[Array, "N"]) -> Units:
    """Shields take damage first, armour comes off the rest; hits of one loop land one after the other."""
    count = len(hits)
    lands = hits[None, :] == np.arange(count)[:, None]  # target x attacker
    damage = jnp.where(lands, facts.damage.T, 0)
    before = damage @ np.triu(np.ones((count, count), np.float32), 1)
    by_shield = jnp.clip(units.shield[:, None] - before, 0, damage)
    through = damage - by_shield
    by_health = jnp.where(through > 0, jnp.maximum(through - facts.armour[:, None], data.LEAST_DAMAGE), 0)
    return replace(
        units,
        health=jnp.where(units.alive, jnp.maximum(units.health - jnp.sum(by_health, axis=1), 0), 0),
        shield=units.shield - jnp.sum(by_shield, axis=1),
        since_damage=jnp.where(jnp.any(lands, axis=1), 0, jnp.minimum(units.since_damage + 1, FORGOTTEN)),
    )


def regain(facts: Facts, units: Units, table: Table) -> Units:
    """Shields come back, and energy."""
    shield = jnp.where(units.since_damage > data.SHIELD_DELAY, units.shield + data.SHIELD_PER_LOOP, units.shield)
    energy = jnp.where(facts.heals > 0, jnp.minimum(units.energy + data.ENERGY_PER_LOOP, data.ENERGY_MAX), 0)
    return replace(units, shield=jnp.where(units.alive, jnp.minimum(shield, facts.max_shield), 0), energy=energy)


def heal(facts: Facts, units: Units, reached: Bool[Array, "N"]) -> Units:
    """Healers give health for energy; a unit is healed by one at a time, the first of those who would."""
    at = jnp.maximum(units.target, 0)
    missing = (facts.max_health - units.health)[at]
    wants = units.alive & reached & (facts.heals > 0) & units.alive[at] & (missing > 0) & (units.energy > 0)
    count = len(at)
    rivals = (at[:, None] == at[None, :]) & wants[None, :] & np.tri(count, k=-1, dtype=bool)
    heals = wants & ~jnp.any(rivals, axis=1)
    given = jnp.where(heals, jnp.minimum(jnp.minimum(facts.heals, missing), units.energy / data.ENERGY_PER_HEALTH), 0)
    received = jnp.sum(jnp.where(at[:, None] == np.arange(count), given[:, None], 0), axis=0)
    return replace(units, health=units.health + received, energy=units.energy - data.ENERGY_PER_HEALTH * given)


def answer(facts: Facts, units: Units, orders: Orders, hits: Int[Array, "N"], distance: Float[Array, "N N"]) -> Units:
    """Idle units that are hit turn on who did it, and those near by come to help."""
    count = len(hits)
    hit_by = hits[None, :] == np.arange(count)[:, None]
    attacker = jnp.where(jnp.any(hit_by, axis=1), jnp.argmax(hit_by, axis=1), NOTHING)
    idle = orders.picks & orders.idle & units.alive & (units.target == NOTHING)
    calls = (attacker != NOTHING) & orders.picks & orders.idle
    hears = (distance <= HELP) & calls[None, :] & (orders.ours[:, None] == orders.ours[None, :])
    caller = jnp.argmax(hears, axis=1)  # a unit that was hit hears itself, or one before it
    culprit = jnp.where(jnp.any(hears, axis=1), attacker[caller], NOTHING)
    culprit = jnp.where(attacker != NOTHING, attacker, culprit)
    can = (culprit != NOTHING) & (_pick(facts.damage, jnp.maximum(culprit, 0)) > 0)
    return replace(units, target=jnp.where(idle & can, culprit, units.target))
