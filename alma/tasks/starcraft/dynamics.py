"""The base defence itself: where armies come from, when they attack, who wins."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.task.outcome import Outcome
from alma.task.view import Actions
from alma.tasks.starcraft.combat import NOTHING, Orders, Units, fight
from alma.tasks.starcraft.rules import LOOPS_PER_STEP, Rules

STOP, MOVES = 0, np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]], np.float32)
"""Actions: stop; moves to the north, south, east and west; then a target each."""

FIRST_TARGET = 1 + len(MOVES)

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
