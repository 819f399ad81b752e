"""The base defence itself: where armies come from, when they attack, who wins."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.task import Actions, Outcome
from alma.tasks.starcraft import combat
from alma.tasks.starcraft.combat import NOTHING, Orders, Units, fight
from alma.tasks.starcraft.rules import LOOPS_PER_STEP, Rules
from alma.tasks.starcraft.units import ENERGY_START

STOP, MOVES = 0, np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]], np.float32)
"""Actions: stop; moves to the north, south, east and west; then a target each."""
FIRST_TARGET = 1 + len(MOVES)

SPREAD_LOOPS = 40
"""Loops in which units make room for each other before the game begins."""
SETTLED = 2.0
"""Within this distance of where it started, a unit that retreats has arrived."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A battle. Units are ours, A slots, then theirs, K slots; M armies."""

    units: Units
    army: Int[Array, "K"]
    """The army of every enemy; -1 where a slot is empty."""
    start: Float[Array, "M 2"]
    """Where each army comes from."""
    attacking: Bool[Array, "M"]
    timer: Int[Array, "M"]
    """Steps until an army changes its mind."""
    since_switch: Int[Array, "M"]
    settled: Bool[Array, "K"]
    """Enemies that are back where they started, and idle."""
    moved: Float[Array, "A+K 2"]
    """Way of every unit in the last step."""
    order: Int[Array, "A"]
    """In which heuristics look at agents."""
    time: Int[Array, ""]

    @property
    def agents(self) -> int:
        return len(self.order)

    @property
    def of_army(self) -> Bool[Array, "*b M K"]:
        """Which enemies make up each army, dead or alive."""
        return jnp.equal(self.army[..., None, :], np.arange(self.start.shape[-2])[:, None])

    @property
    def exists(self) -> Bool[Array, "*b M"]:
        """Armies that there are, or were."""
        return jnp.any(self.of_army, axis=-1)


# ---- beginning


def draw_battle(rules: Rules, key: PRNGKeyArray) -> State:
    """Draw teams, armies and where everything is."""
    keys = jax.random.split(key, 8)
    team = jax.random.randint(keys[0], (), 0, len(rules.teams))
    ours = _fill_slots(keys[1], jnp.asarray(rules.teams)[team], rules.max_agents)
    theirs = _fill_slots(keys[2], jnp.asarray(rules.enemy_teams)[team], rules.max_enemies)
    army, exists = _split(rules, keys[3], theirs >= 0)
    start = _starts(rules, keys[4], jnp.sum(exists))
    kind = jnp.concatenate([ours, theirs])
    position = _positions(rules, keys[5], kind, army, start)
    timer = jax.random.randint(keys[6], exists.shape, 0, rules.first_attack)
    earliest = jnp.min(jnp.where(exists, timer, rules.first_attack))
    return State(
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


def _fill_slots(key: PRNGKeyArray, counts: Int[Array, "T"], slots: int) -> Int[Array, "slots"]:
    """So many units of each type, in random slots; -1 elsewhere."""
    ends = jnp.cumsum(counts)
    kind = jnp.searchsorted(ends, jnp.arange(slots), side="right")
    return jax.random.permutation(key, jnp.where(jnp.arange(slots) < ends[-1], kind, -1)).astype(jnp.int8)


def _split(rules: Rules, key: PRNGKeyArray, present: Bool[Array, "K"]) -> tuple[Int[Array, "K"], Bool[Array, "M"]]:
    """Divide enemies among armies: how many armies, then how many units in one after the other."""
    number_key, size_key, shuffle_key = jax.random.split(key, 3)
    total, most = jnp.sum(present), rules.max_army_size
    fewest_armies = jnp.maximum(2, -(-total // most))
    armies = _between(number_key, fewest_armies, jnp.minimum(total, rules.max_armies))
    ends, left = [], total
    for i, one_key in enumerate(jax.random.split(size_key, rules.max_armies)):
        later = jnp.maximum(armies - i - 1, 0)
        size = _between(one_key, jnp.maximum(1, left - most * later), jnp.minimum(most, left - later))
        size = jnp.where(i < armies, size, 0)
        left -= size
        ends.append(total - left)
    # Slots hold units in random order, but shuffled once more they are independent of types whatever the slots are.
    rank = jnp.argsort(jnp.argsort(jnp.where(present, jax.random.uniform(shuffle_key, present.shape), 2)))
    army = jnp.searchsorted(jnp.stack(ends), rank, side="right")
    return jnp.where(present, army, -1), jnp.arange(rules.max_armies) < armies


def _between(key: PRNGKeyArray, low: Int[Array, ""], high: Int[Array, ""]) -> Int[Array, ""]:
    return jax.random.randint(key, (), low, jnp.maximum(high, low) + 1)


def _starts(rules: Rules, key: PRNGKeyArray, armies: Int[Array, ""]) -> Float[Array, "M 2"]:
    """Armies come from all round, or from nearer to each other."""
    turn_key, spread_key = jax.random.split(key)
    spread = jax.random.uniform(
        spread_key, (rules.max_armies,), minval=rules.spread_range[0], maxval=rules.spread_range[1]
    )
    if rules.one_spread is not None:
        spread = spread.at[1].set(rules.one_spread)
    turn = 2 * jnp.pi * jax.random.uniform(turn_key)
    angle = turn + spread * 2 * jnp.pi * jnp.arange(rules.max_armies) / jnp.maximum(armies, 1)
    return rules.map_size / 2 + rules.army_distance * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def _positions(
    rules: Rules, key: PRNGKeyArray, kind: Int[Array, "N"], army: Int[Array, "K"], start: Float[Array, "M 2"]
) -> Float[Array, "N 2"]:
    """Ours around the base, each type a little to one side; theirs around their starts; nobody in another's way."""
    type_key, scatter_key = jax.random.split(key)
    side = jax.random.uniform(type_key, (len(rules.types), 2), minval=-1, maxval=1)
    ours = rules.map_size / 2 + side[kind[: rules.max_agents]]
    about = jnp.concatenate([ours, start[army]])
    scattered = about + jax.random.uniform(scatter_key, about.shape, minval=-0.5, maxval=0.5)
    units = combat.unpack(_fresh_units(rules, kind, scattered))
    no = jnp.zeros(len(kind), bool)
    facts = combat.gather_facts(rules.table, units, Orders(units.x, units.y, no, no, no, no))

    def spread(units: Units, _: None) -> tuple[Units, None]:
        push_x, push_y = combat.room(facts, units, combat.measure(units))
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


# ---- one step


class Result(NamedTuple):
    """How a battle stands."""

    beaten: Bool[Array, "M"]
    """Armies of which none can fight any more."""
    breached: Bool[Array, "M"]
    """Armies with a fighting unit in the base."""
    active: Bool[Array, "M"]
    """Armies that are neither."""
    won: Bool[Array, ""]
    lost: Bool[Array, ""]


def fighters(rules: Rules, state: State) -> Bool[Array, "N"]:
    """Units that are alive and can fight."""
    return state.units.alive & jnp.asarray(rules.table.fights)[jnp.maximum(state.units.kind, 0)]


def ways_to_base(rules: Rules, state: State) -> Float[Array, "K"]:
    """How far enemies are from the middle of the base."""
    return jnp.linalg.norm(state.units.position[state.agents :] - rules.map_size / 2, axis=-1)


def judge(rules: Rules, state: State) -> Result:
    """An army is beaten when none of it can fight; the base falls when one that can stands in it."""
    agents, fights = state.agents, fighters(rules, state)
    inside = fights[agents:] & (ways_to_base(rules, state) <= rules.base_radius)
    breached = jnp.any(state.of_army & inside, axis=1)
    beaten = state.exists & ~jnp.any(state.of_army & fights[agents:], axis=1)
    lost = jnp.any(breached) | ~jnp.any(fights[:agents])
    won = ~jnp.any(fights[agents:]) & ~lost
    return Result(beaten, breached, state.exists & ~beaten & ~breached, won, lost)


def step(rules: Rules, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
    """Half a second: orders are given, then units fight."""
    dwell_key, fight_key = jax.random.split(key)
    began = judge(rules, state)
    state = change_minds(rules, dwell_key, state, began)
    orders, targets = give_orders(rules, state, actions)
    given = replace(state.units, target=targets)
    fought = fight(rules.types, fight_key, given, orders, LOOPS_PER_STEP, rules.map_size)
    way = jnp.where(fought.alive[:, None], fought.position - state.units.position, 0)
    after = replace(
        state,
        units=fought,
        moved=way.astype(jnp.float16),
        settled=settle(state, fought),
        since_switch=jnp.minimum(state.since_switch + 1, 100).astype(jnp.int8),
        time=(state.time + 1).astype(jnp.int16),
    )
    ended = judge(rules, after)
    outcome = reckon(rules, state, after, began, ended)
    return replace(after, units=reinforce(rules, after, ended.beaten & ~began.beaten)), outcome


def reckon(rules: Rules, before: State, after: State, began: Result, ended: Result) -> Outcome:
    """What a step was worth: health and shields that the enemy lost, and more for kills and victories."""
    agents, old, new = before.agents, before.units, after.units
    died = old.alive & ~new.alive
    lost = old.health + old.shield - new.health - new.shield
    per_unit = (lost + rules.kill_reward * died)[agents:]
    per_army = jnp.sum(jnp.where(before.of_army, per_unit, 0), axis=1)
    per_army += rules.win_reward * (ended.beaten & ~began.beaten)
    over = after.time >= rules.max_steps
    return Outcome(
        reward=rules.reward_scale * (jnp.sum(per_unit) + rules.win_reward * ended.won),
        subtask_rewards=rules.reward_scale * jnp.where(began.active, per_army, 0),
        terminated=ended.won | ended.lost | over,
        truncated=jnp.asarray(False),
        finished=ended.beaten | ended.breached,
        success=ended.won,
        metrics={
            "kills": jnp.sum(died[agents:]).astype(jnp.float32),
            "deaths": jnp.sum(died[:agents]).astype(jnp.float32),
            "breached": jnp.any(ended.breached).astype(jnp.float32),
            "timed_out": (over & ~ended.won & ~ended.lost).astype(jnp.float32),
        },
    )


def change_minds(rules: Rules, key: PRNGKeyArray, state: State, stands: Result) -> State:
    """Armies whose time is up go from retreat to attack, or back; those without fighters stay at home."""
    due = (state.timer <= 0) & state.exists
    low, high = rules.dwell_range
    drawn = jax.random.randint(key, due.shape, low, high + 1)
    attacking = jnp.where(due, ~state.attacking, state.attacking) & ~stands.beaten
    switched = attacking != state.attacking
    at_once = switched[jnp.maximum(state.army, 0)] & (state.army >= 0)
    return replace(
        state,
        attacking=attacking,
        timer=(jnp.where(due, drawn, state.timer) - 1).astype(jnp.int8),
        since_switch=jnp.where(switched, 0, state.since_switch).astype(jnp.int8),
        settled=state.settled & ~at_once,
    )


def give_orders(rules: Rules, state: State, actions: Actions) -> tuple[Orders, Int[Array, "N"]]:
    """Ours do as their actions say, theirs as their army does."""
    agents, units = state.agents, state.units
    ours = np.arange(len(units.kind)) < agents
    is_move = (actions > STOP) & (actions < FIRST_TARGET)
    direction = jnp.asarray(MOVES)[jnp.clip(actions - 1, 0, len(MOVES) - 1)]
    slot = actions - FIRST_TARGET
    heals = jnp.asarray(rules.table.heals)[jnp.maximum(units.kind[:agents], 0)] > 0
    target = jnp.where(slot >= 0, jnp.where(heals, slot, slot + agents), NOTHING)

    army = jnp.maximum(state.army, 0)
    attacks = state.attacking[army]
    home = state.start[army]
    base = jnp.full_like(home, rules.map_size / 2)
    away = jnp.linalg.norm(units.position[agents:] - home, axis=-1) > SETTLED
    ahead = units.position[:agents] + rules.order_distance * direction
    goal = jnp.concatenate([ahead, jnp.where(attacks[:, None], base, home)])
    orders = Orders(
        goal_x=goal[:, 0],
        goal_y=goal[:, 1],
        walks=jnp.concatenate([is_move, attacks | away]),
        picks=jnp.concatenate([jnp.zeros(agents, bool), attacks | state.settled]),
        idle=jnp.concatenate([jnp.zeros(agents, bool), ~attacks & state.settled]),
        ours=jnp.asarray(ours),
    )
    # Who retreats forgets about its target.
    kept = jnp.where(orders.picks[agents:], units.target[agents:], NOTHING)
    return orders, jnp.concatenate([target, kept]).astype(jnp.int8)


def settle(state: State, units: Units) -> Bool[Array, "K"]:
    """Enemies that retreated and have arrived."""
    army = jnp.maximum(state.army, 0)
    way = units.position[state.agents :] - state.start[army]
    arrived = jnp.linalg.norm(way, axis=-1) <= SETTLED
    return (state.settled | arrived) & ~state.attacking[army] & (state.army >= 0)


def reinforce(rules: Rules, state: State, newly_beaten: Bool[Array, "M"]) -> Units:
    """At a disadvantage, beating an army heals those of us whose nearest army it was."""
    agents, units = state.agents, state.units
    present = units.kind >= 0
    ours, theirs = jnp.sum(present[:agents]), jnp.sum(present[agents:])
    others = jnp.maximum(jnp.sum(state.exists) - 1, 1)
    share = rules.heal_bonus * (theirs - ours) / (ours * others)
    way = units.position[:agents, None] - state.start[None]
    distance = jnp.where(state.exists, jnp.linalg.norm(way, axis=-1), jnp.inf)
    gains = newly_beaten[jnp.argmin(distance, axis=1)] & units.alive[:agents]
    kind = jnp.maximum(units.kind[:agents], 0)

    def gained(now: Float[Array, "N"], most: np.ndarray) -> Float[Array, "N"]:
        full = jnp.asarray(most)[kind]
        return now.at[:agents].set(jnp.where(gains, jnp.minimum(now[:agents] + share * full, full), now[:agents]))

    return replace(
        units,
        health=gained(units.health, rules.table.health),
        shield=gained(units.shield, rules.table.shield),
    )
