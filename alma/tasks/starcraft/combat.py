"""The combat simulation, one game loop at a time. Both sides act simultaneously and by the same rules.

Units are rows of arrays, N of them, on both sides. Their orders (`Orders`) are fixed for the loops of a step; their
targets may change. In this module, batch axes come *last*, since vectorised code runs fastest along the last axis;
`fight` moves them there and back.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.tasks.starcraft import units as data
from alma.tasks.starcraft.units import Table, make_table

NOTHING = -1
"""No target."""
ACQUISITION_RANGE = 5.0
"""Distance within which units that choose their own targets notice enemies (or their weapon's range, if larger)."""
LEASH_RANGE = 10.0
"""Distance up to which idle units pursue a target."""
HELP_RANGE = 4.0
"""Distance up to which idle units come to the help of a unit that was hit."""
HEAL_RANGE = 6.0
"""Distance within which Medivacs that choose their own targets notice damaged units."""
MAX_SINCE_DAMAGE = 1000.0
"""Where the counter of loops since a unit was hit stops."""
PUSH_SHARE = 0.5
"""Fraction of an overlap that is resolved in one loop."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Units:
    """The state of all units."""

    kind: Int[Array, "N *b"]
    """The unit type, a row of `Table`; -1 for empty slots."""
    x: Float[Array, "N *b"]
    y: Float[Array, "N *b"]
    health: Float[Array, "N *b"]
    """0 for dead units and empty slots."""
    shield: Float[Array, "N *b"]
    energy: Float[Array, "N *b"]
    speed: Float[Array, "N *b"]
    """Current speed, in cells per loop."""
    cooldown: Float[Array, "N *b"]
    """Loops until the next shot."""
    target: Int[Array, "N *b"]
    """Index of the unit that is attacked or healed; `NOTHING` without a target."""
    hit_in: Float[Array, "N *b"]
    """Loops until the last shot, or its second hit, lands; 0 if none is pending."""
    hit_target: Int[Array, "N *b"]
    """Index of the unit that the last shot was aimed at."""
    since_damage: Float[Array, "N *b"]
    """Loops since the unit was last hit."""

    @property
    def alive(self) -> Bool[Array, "N *b"]:
        return jnp.greater(self.health, 0)

    @property
    def position(self) -> Float[Array, "N *b 2"]:
        return jnp.stack([self.x, self.y], axis=-1)


def pack(units: Units) -> Units:
    """Convert to the small dtypes that are stored between steps, and in replay."""
    short = ("energy", "speed", "cooldown", "hit_in", "since_damage")
    changed = {name: getattr(units, name).astype(jnp.float16) for name in short}
    changed |= {name: getattr(units, name).astype(jnp.int8) for name in ("kind", "target", "hit_target")}
    return replace(units, **changed)


def unpack(units: Units) -> Units:
    """Convert back to the dtypes used in computations."""
    whole = {jnp.float16: jnp.float32, jnp.int8: jnp.int32}
    return jax.tree.map(lambda leaf: leaf.astype(whole.get(leaf.dtype.type, leaf.dtype)), units)


class Orders(NamedTuple):
    """The orders of all units for one step."""

    goal_x: Float[Array, "N *b"]
    """Destination of units without a target."""
    goal_y: Float[Array, "N *b"]
    walks: Bool[Array, "N *b"]
    """Whether a unit without a target walks to its destination; False: it stays."""
    picks: Bool[Array, "N *b"]
    """Whether the unit chooses its own targets."""
    idle: Bool[Array, "N *b"]
    """Whether a unit that chooses its own targets is idle: it waits, strikes back when hit, and comes to help."""
    ours: Bool[Array, "N *b"]
    """Whether the unit is one of the agents."""


class Facts(NamedTuple):
    """What is constant during a step: properties of every unit and of every two units, by their types and sides."""

    radius: Float[Array, "N *b"]
    step: Float[Array, "N *b"]
    acceleration: Float[Array, "N *b"]
    period: Float[Array, "N *b"]
    second_hit: Float[Array, "N *b"]
    bolt_step: Float[Array, "N *b"]
    heals: Float[Array, "N *b"]
    armour: Float[Array, "N *b"]
    max_health: Float[Array, "N *b"]
    max_shield: Float[Array, "N *b"]
    damage: Float[Array, "N N *b"]
    """Damage of a hit before armour, by attacker and target."""
    reach: Float[Array, "N N *b"]
    """Distance between centres within which the first unit can hit or heal the second."""
    apart: Float[Array, "N N *b"]
    """Minimum distance between centres; 0 for units that do not collide."""
    sees: Float[Array, "N N *b"]
    """Distance within which the first unit, choosing its own target, considers the second; negative: never."""


def gather_facts(table: Table, units: Units, orders: Orders) -> Facts:
    """Look up all properties that are constant during a step."""
    types = len(table.health)
    kind, exists = jnp.maximum(units.kind, 0), units.kind >= 0

    def of(column: np.ndarray) -> Float[Array, "N *b"]:
        # There are only a few types: selecting with `where` is faster than indexing.
        found = sum(jnp.where(kind == t, float(column[t]), 0.0) for t in range(types))
        return jnp.where(exists, found, 0)

    def by_type(matrix: np.ndarray) -> Float[Array, "N N *b"]:
        rows = sum(jnp.where(kind[:, None] == t, of(matrix[t])[None], 0.0) for t in range(types))
        return jnp.asarray(rows)

    radius, heals, separation, flying = of(table.radius), of(table.heals), of(table.separation), of(table.flying)
    foes = orders.ours[:, None] != orders.ours[None]
    other = append_axes(~np.eye(len(kind), dtype=bool), kind.ndim + 1)
    damage = by_type(table.damage)
    heal = (by_type(table.healable) > 0) & ~foes & other
    sight = jnp.maximum(ACQUISITION_RANGE, of(table.range))[:, None]
    collide = (flying[:, None] == flying[None]) & other
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
        reach=by_type(table.reach),
        apart=jnp.where(collide, separation[:, None] + separation[None], 0),
        sees=jnp.where((damage > 0) & foes, sight, jnp.where(heal, HEAL_RANGE, -1)),
    )


def append_axes(array: np.ndarray, dimensions: int) -> np.ndarray:
    """The array with axes of length 1 appended, so that it has this number of dimensions."""
    return array.reshape(*array.shape, *[1] * (dimensions - array.ndim))


def fight(
    types: tuple[str, ...], key: PRNGKeyArray, units: Units, orders: Orders, loops: int, map_size: float
) -> Units:
    """Simulate one battle for a number of game loops."""
    jitter = jax.random.uniform(key, (loops, len(units.kind)), minval=data.JITTER[0], maxval=data.JITTER[1])
    return _batched_simulate(types, map_size)(units, orders, jitter)


@lru_cache
def _batched_simulate(types: tuple[str, ...], map_size: float) -> Any:
    """`simulate` with a batching rule: under `vmap`, all battles are simulated together with the batch axis last."""
    together = jax.custom_batching.custom_vmap(
        lambda units, orders, jitter: simulate(make_table(types), units, orders, jitter, map_size)
    )

    @together.def_vmap
    def rule(count: int, batched: Any, *arguments: Any) -> Any:
        def put_last(is_batched: bool, leaf: Array) -> Array:
            return jnp.moveaxis(leaf, 0, -1) if is_batched else jnp.broadcast_to(leaf[..., None], (*leaf.shape, count))

        fought = together(*jax.tree.map(put_last, batched, list(arguments)))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), fought), jax.tree.map(lambda _: True, fought)

    return together


def simulate(table: Table, units: Units, orders: Orders, jitter: Float[Array, "L N *b"], map_size: float) -> Units:
    """Simulate one game loop per row of `jitter`, the random variation of the time between shots."""
    units = unpack(units)
    facts = gather_facts(table, units, orders)

    def body(units: Units, jitter: Float[Array, "N *b"]) -> tuple[Units, None]:
        return game_loop(table, facts, units, orders, jitter, map_size), None

    return pack(jax.lax.scan(body, units, jitter)[0])


class Offsets(NamedTuple):
    """Offsets from the first unit to the second, and their distances, for every two units."""

    dx: Float[Array, "N N *b"]
    dy: Float[Array, "N N *b"]
    distance: Float[Array, "N N *b"]


def pairwise_offsets(units: Units) -> Offsets:
    """The offsets between all units."""
    dx, dy = units.x[None] - units.x[:, None], units.y[None] - units.y[:, None]
    return Offsets(dx, dy, jnp.sqrt(dx**2 + dy**2))


def game_loop(
    table: Table, facts: Facts, units: Units, orders: Orders, jitter: Float[Array, "N *b"], map_size: float
) -> Units:
    """Simulate one game loop (1/16 s): choose targets, move, shoot, take damage, regenerate, heal, strike back."""
    pairs = pairwise_offsets(units)
    units = replace(units, target=choose_targets(table, facts, units, orders, pairs.distance))
    aims = one_hot_targets(units.target)
    reached = jnp.any(aims & (pairs.distance <= facts.reach), axis=1)
    moved = move(facts, units, orders, pairs, aims, reached, map_size)
    shots, hits = shoot(facts, moved, pairs.distance, aims, reached, jitter)
    after = regenerate(facts, take_hits(facts, shots, hits))
    if table.heals.any():
        after = heal(facts, after, aims, reached)
    return strike_back(facts, after, orders, hits, pairs.distance)


def one_hot_targets(target: Int[Array, "N *b"]) -> Bool[Array, "N N *b"]:
    """One-hot targets: whether the second unit is the target of the first."""
    count = len(target)
    return target[:, None] == append_axes(np.arange(count)[None], target.ndim + 1)


def value_of_target(aims: Bool[Array, "N N *b"], values: Float[Array, "#N N *b"]) -> Float[Array, "N *b"]:
    """For each unit, the value of its target (or of the pair of both); 0 without a target."""
    return jnp.sum(jnp.where(aims, values, 0), axis=1)


# ---- whom to attack


def choose_targets(
    table: Table, facts: Facts, units: Units, orders: Orders, distance: Float[Array, "N N *b"]
) -> Int[Array, "N *b"]:
    """Update targets. Dead targets are dropped; units that choose their own targets keep theirs while it is near, else
    take the nearest one. Healers take the most damaged one."""
    there = one_hot_targets(units.target) & units.alive[None] & units.alive[:, None]
    kept_within = jnp.where(orders.idle[:, None], LEASH_RANGE, facts.sees)
    near = jnp.any(there & (distance <= kept_within), axis=1)
    noticed = (distance <= facts.sees) & units.alive[None]
    cost = distance
    if table.heals.any():
        missing = facts.max_health - units.health
        heals = (facts.heals > 0)[:, None]
        noticed &= ~heals | (missing > 0)[None]
        cost = jnp.where(heals, -missing[None], distance)
        near &= ~heals[:, 0]  # healers choose anew in every loop
    best = argmin_or_nothing(jnp.where(noticed, cost, jnp.inf))
    picked = jnp.where(near, units.target, best)
    has = jnp.any(there, axis=1)
    return jnp.where(orders.picks & units.alive, picked, jnp.where(has, units.target, NOTHING))


def argmin_or_nothing(costs: Float[Array, "N N *b"]) -> Int[Array, "N *b"]:
    """`argmin` over the second axis; `NOTHING` where all costs are infinite.

    Written as a loop, because `jnp.argmin` is not vectorised along the batch axis, which is last.
    """
    best, at = costs[:, 0], jnp.where(jnp.isfinite(costs[:, 0]), 0, NOTHING)
    for column in range(1, costs.shape[1]):
        better = costs[:, column] < best
        best, at = jnp.where(better, costs[:, column], best), jnp.where(better, column, at)
    return at


# ---- where to go


def move(
    facts: Facts,
    units: Units,
    orders: Orders,
    pairs: Offsets,
    aims: Bool[Array, "N N *b"],
    reached: Bool[Array, "N *b"],
    map_size: float,
) -> Units:
    """Walk towards the target until it is within reach, or to the destination; push overlapping units apart."""
    hunting = units.target != NOTHING
    way_x = jnp.where(hunting, value_of_target(aims, pairs.dx), orders.goal_x - units.x)
    way_y = jnp.where(hunting, value_of_target(aims, pairs.dy), orders.goal_y - units.y)
    walks = units.alive & jnp.where(hunting, ~reached, orders.walks)
    length = jnp.sqrt(way_x**2 + way_y**2)
    speed = jnp.where(walks, jnp.minimum(units.speed + facts.acceleration, facts.step), 0)
    share = jnp.minimum(speed, length) / jnp.maximum(length, 1e-6)
    push_x, push_y = separation_push(facts, units, pairs)
    low, high = facts.radius, map_size - facts.radius
    return replace(
        units,
        x=jnp.clip(units.x + share * way_x + push_x, low, high),
        y=jnp.clip(units.y + share * way_y + push_y, low, high),
        speed=speed,
    )


def separation_push(facts: Facts, units: Units, pairs: Offsets) -> tuple[Float[Array, "N *b"], Float[Array, "N *b"]]:
    """Displacements that push overlapping units apart, each by half."""
    overlap = jnp.where(units.alive[:, None] & units.alive[None], jnp.maximum(facts.apart - pairs.distance, 0), 0)
    push = PUSH_SHARE / 2 * overlap / jnp.maximum(pairs.distance, 1e-3)
    return -jnp.sum(push * pairs.dx, axis=1), -jnp.sum(push * pairs.dy, axis=1)


# ---- shooting, damage and healing


def shoot(
    facts: Facts,
    units: Units,
    distance: Float[Array, "N N *b"],
    aims: Bool[Array, "N N *b"],
    reached: Bool[Array, "N *b"],
    jitter: Float[Array, "N *b"],
) -> tuple[Units, Int[Array, "N *b"]]:
    """Shoot where weapons are ready; also returns the unit that each unit hits in this loop.

    At most one hit per unit is pending: projectiles and second hits land before the unit can shoot again.
    """
    fires = units.alive & reached & (units.cooldown <= 0) & jnp.any(aims & (facts.damage > 0), axis=1)
    flight = jnp.maximum(value_of_target(aims, distance) / jnp.maximum(facts.bolt_step, 1e-6), 1)
    at_once = fires & (facts.bolt_step == 0)
    # Projectiles fly on after the death of the shooter; second hits do not happen.
    lands = (units.hit_in > 0) & (units.hit_in <= 1) & (units.alive | (facts.bolt_step > 0))
    hits = jnp.where(at_once, units.target, jnp.where(lands, units.hit_target, NOTHING))
    # Fractions of a loop left over from the last shot count for the next, so that the mean period is exact.
    cooled_down = jnp.where(units.cooldown > 0, units.cooldown - 1, 0)
    hit_in = jnp.where(fires, jnp.where(at_once, facts.second_hit, flight), jnp.maximum(units.hit_in - 1, 0))
    return replace(
        units,
        cooldown=jnp.where(fires, units.cooldown + facts.period + jitter - 1, cooled_down),
        hit_in=hit_in,
        hit_target=jnp.where(fires, units.target, units.hit_target),
    ), hits


def take_hits(facts: Facts, units: Units, hits: Int[Array, "N *b"]) -> Units:
    """Apply damage: to shields first, then to health, reduced by armour. Hits of one loop land one after another."""
    lands = one_hot_targets(hits)  # attacker x target
    shield, wounds = units.shield, jnp.zeros_like(units.health)
    for attacker in range(len(hits)):
        damage = jnp.where(lands[attacker], facts.damage[attacker], 0)
        through = jnp.maximum(damage - shield, 0)
        shield = shield - (damage - through)
        wounds += jnp.where(through > 0, jnp.maximum(through - facts.armour, data.LEAST_DAMAGE), 0)
    was_hit = jnp.any(lands, axis=0)
    return replace(
        units,
        health=jnp.where(units.alive, jnp.maximum(units.health - wounds, 0), 0),
        shield=shield,
        since_damage=jnp.where(was_hit, 0, jnp.minimum(units.since_damage + 1, MAX_SINCE_DAMAGE)),
    )


def regenerate(facts: Facts, units: Units) -> Units:
    """Regenerate shields and energy."""
    shield = jnp.where(units.since_damage > data.SHIELD_DELAY, units.shield + data.SHIELD_PER_LOOP, units.shield)
    energy = jnp.where(facts.heals > 0, jnp.minimum(units.energy + data.ENERGY_PER_LOOP, data.ENERGY_MAX), 0)
    return replace(units, shield=jnp.where(units.alive, jnp.minimum(shield, facts.max_shield), 0), energy=energy)


def heal(facts: Facts, units: Units, aims: Bool[Array, "N N *b"], reached: Bool[Array, "N *b"]) -> Units:
    """Healers turn energy into health of their targets; a unit is healed by only one of them, the first."""
    missing = value_of_target(aims & units.alive[None], (facts.max_health - units.health)[None])
    wants = units.alive & reached & (facts.heals > 0) & (missing > 0) & (units.energy > 0)
    would = jnp.minimum(jnp.minimum(facts.heals, missing), units.energy / data.ENERGY_PER_HEALTH)
    healed, received, given = jnp.zeros_like(units.alive), jnp.zeros_like(units.health), []
    for healer in range(len(wants)):
        chosen = aims[healer] & wants[healer] & ~healed
        healed |= chosen
        received += jnp.where(chosen, would[healer], 0)
        given.append(jnp.where(jnp.any(chosen, axis=0), would[healer], 0))
    return replace(
        units,
        health=units.health + received,
        energy=units.energy - data.ENERGY_PER_HEALTH * jnp.stack(given),
    )


def strike_back(
    facts: Facts, units: Units, orders: Orders, hits: Int[Array, "N *b"], distance: Float[Array, "N N *b"]
) -> Units:
    """Idle units that are hit target their attacker; idle units of their side within `HELP_RANGE` target it too."""
    may_strike = orders.picks & orders.idle & units.alive
    hit_by = one_hot_targets(hits)  # attacker x target
    count = len(hits)
    attacker = jnp.full_like(units.target, NOTHING)
    for one in reversed(range(count)):
        attacker = jnp.where(hit_by[one], one, attacker)
    calls_for_help = may_strike & (attacker != NOTHING)
    same_side = orders.ours[:, None] == orders.ours[None]
    helps = (distance <= HELP_RANGE) & calls_for_help[None] & same_side
    new_target = jnp.full_like(units.target, NOTHING)
    for one in reversed(range(count)):
        new_target = jnp.where(helps[:, one], attacker[one], new_target)
    new_target = jnp.where(attacker != NOTHING, attacker, new_target)
    can_hit = jnp.any(one_hot_targets(new_target) & (facts.damage > 0), axis=1)
    return replace(units, target=jnp.where(may_strike & (units.target == NOTHING) & can_hit, new_target, units.target))
