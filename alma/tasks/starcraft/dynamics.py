"""The state of the base defence and how one step changes it: when armies attack, orders, rewards, who wins."""

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
"""The first actions: stop, then moves to the north, south, east and west."""

FIRST_TARGET = 1 + len(MOVES)
"""The first of the actions that choose a target."""

SETTLED_DISTANCE = 2.0
"""A retreating unit has arrived when it is within this distance of its army's starting point."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """The state of a battle: A slots of our units, then K slots of enemies, in M armies."""

    units: Units
    army: Int[Array, "K"]
    """The army of every enemy; -1 for empty slots."""
    start: Float[Array, "M 2"]
    """The starting point of each army."""
    attacking: Bool[Array, "M"]
    """Whether each army attacks; otherwise it retreats to its starting point."""
    timer: Int[Array, "M"]
    """Steps until each army switches between attack and retreat."""
    since_switch: Int[Array, "M"]
    """Steps since each army last switched."""
    settled: Bool[Array, "K"]
    """Enemies that have retreated to their starting point and are idle."""
    moved: Float[Array, "A+K 2"]
    """Displacement of every unit in the last step."""
    order: Int[Array, "A"]
    """The order in which heuristics assign agents."""
    time: Int[Array, ""]
    """Steps so far."""

    @property
    def agents(self) -> int:
        """A: the number of agent slots."""
        return len(self.order)

    @property
    def of_army(self) -> Bool[Array, "*b M K"]:
        """Which enemies belong to each army, dead or alive."""
        return jnp.equal(self.army[..., None, :], np.arange(self.start.shape[-2])[:, None])

    @property
    def exists(self) -> Bool[Array, "*b M"]:
        """Armies of this battle, beaten or not."""
        return jnp.any(self.of_army, axis=-1)


# ---- one step


class BattleStatus(NamedTuple):
    """Which armies are beaten, and whether the battle is won or lost."""

    beaten: Bool[Array, "M"]
    """Armies without a living unit that can fight."""
    breached: Bool[Array, "M"]
    """Armies with a unit that can fight inside the base."""
    active: Bool[Array, "M"]
    """Armies that are neither beaten nor inside the base."""
    won: Bool[Array, ""]
    lost: Bool[Array, ""]


def fighters(rules: Rules, state: State) -> Bool[Array, "N"]:
    """Units that are alive and have a weapon."""
    return state.units.alive & jnp.asarray(rules.table.fights)[jnp.maximum(state.units.kind, 0)]


def distances_to_base(rules: Rules, state: State) -> Float[Array, "K"]:
    """Distances of enemies to the centre of the base."""
    return jnp.linalg.norm(state.units.position[state.agents :] - rules.map_size / 2, axis=-1)


def battle_status(rules: Rules, state: State) -> BattleStatus:
    """The status of a battle. An army without a unit that can fight is beaten; one such enemy inside the base wins."""
    agents, fights = state.agents, fighters(rules, state)
    inside = fights[agents:] & (distances_to_base(rules, state) <= rules.base_radius)
    breached = jnp.any(state.of_army & inside, axis=1)
    beaten = state.exists & ~jnp.any(state.of_army & fights[agents:], axis=1)
    lost = jnp.any(breached) | ~jnp.any(fights[:agents])
    won = ~jnp.any(fights[agents:]) & ~lost
    return BattleStatus(beaten, breached, state.exists & ~beaten & ~breached, won, lost)


def step(rules: Rules, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
    """One step of half a second: orders are given, units move and fight, then armies may switch, which agents see
    before they act again."""
    dwell_key, fight_key = jax.random.split(key)
    status_before = battle_status(rules, state)
    orders, targets = give_orders(rules, state, actions)
    ordered = replace(state.units, target=targets)
    fought = fight(rules.types, fight_key, ordered, orders, LOOPS_PER_STEP, rules.map_size)
    displacement = jnp.where(fought.alive[:, None], fought.position - state.units.position, 0)
    after = replace(
        state,
        units=fought,
        moved=displacement.astype(jnp.float16),
        settled=settled_enemies(state, fought),
        since_switch=jnp.minimum(state.since_switch + 1, 100).astype(jnp.int8),
        time=(state.time + 1).astype(jnp.int16),
    )
    status_after = battle_status(rules, after)
    outcome = outcome_of_step(rules, state, after, status_before, status_after)
    outcome = replace(outcome, metrics={**outcome.metrics, **focus_of_fire(state, targets[: state.agents])})
    healed = apply_heal_bonus(rules, after, status_after.beaten & ~status_before.beaten)
    return switch_armies(rules, dwell_key, replace(after, units=healed), status_after), outcome


def outcome_of_step(
    rules: Rules, before: State, after: State, status_before: BattleStatus, status_after: BattleStatus
) -> Outcome:
    """The outcome of a step. Rewards: health and shields that enemies lost, kills, beaten armies and victory."""
    agents, old, new = before.agents, before.units, after.units
    died = old.alive & ~new.alive
    lost = old.health + old.shield - new.health - new.shield
    per_unit = (lost + rules.kill_reward * died)[agents:]
    per_army = jnp.sum(jnp.where(before.of_army, per_unit, 0), axis=1)
    per_army += rules.win_reward * (status_after.beaten & ~status_before.beaten)
    time_is_up = after.time >= rules.max_steps
    return Outcome(
        reward=rules.reward_scale * (jnp.sum(per_unit) + rules.win_reward * status_after.won),
        subtask_rewards=rules.reward_scale * jnp.where(status_before.active, per_army, 0),
        terminated=status_after.won | status_after.lost | time_is_up,
        truncated=jnp.asarray(False),
        finished=status_after.beaten | status_after.breached,
        success=status_after.won,
        metrics={
            "kills": jnp.sum(died[agents:]).astype(jnp.float32),
            "deaths": jnp.sum(died[:agents]).astype(jnp.float32),
            "breached": jnp.any(status_after.breached).astype(jnp.float32),
            "timed_out": (time_is_up & ~status_after.won & ~status_after.lost).astype(jnp.float32),
        },
    )


def focus_of_fire(state: State, targets: Int[Array, "A"]) -> dict[str, Float[Array, ""]]:
    """How far agents attack the same enemies, given the units that they are ordered to attack or heal.

    `joint_shots` counts the agents that attack an army together with others, `focused_shots` those of them that attack
    the enemy of that army that most of them attack.
    """
    agents, alive = state.agents, state.units.alive
    aims = alive[:agents, None] & alive[agents:] & (targets[:, None] == agents + np.arange(len(state.army)))
    shots = jnp.sum(aims, axis=0) * state.of_army  # by army and enemy
    together = jnp.sum(shots, axis=1)
    joint = together > 1
    return {
        "joint_shots": jnp.sum(jnp.where(joint, together, 0)).astype(jnp.float32),
        "focused_shots": jnp.sum(jnp.where(joint, jnp.max(shots, axis=1), 0)).astype(jnp.float32),
    }


def switch_armies(rules: Rules, key: PRNGKeyArray, state: State, status: BattleStatus) -> State:
    """Armies whose timer has run out switch between retreat and attack; beaten ones do not attack."""
    expired = (state.timer <= 0) & state.exists
    low, high = rules.dwell_range
    drawn = jax.random.randint(key, expired.shape, low, high + 1)
    attacking = jnp.where(expired, ~state.attacking, state.attacking) & ~status.beaten
    switched = attacking != state.attacking
    of_switched = switched[jnp.maximum(state.army, 0)] & (state.army >= 0)
    return replace(
        state,
        attacking=attacking,
        timer=(jnp.where(expired, drawn, state.timer) - 1).astype(jnp.int8),
        since_switch=jnp.where(switched, 0, state.since_switch).astype(jnp.int8),
        settled=state.settled & ~of_switched,
    )


def give_orders(rules: Rules, state: State, actions: Actions) -> tuple[Orders, Int[Array, "N"]]:
    """Orders and targets of all units: ours from the actions of agents, the enemies' from the state of their army."""
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
    away = jnp.linalg.norm(units.position[agents:] - home, axis=-1) > SETTLED_DISTANCE
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
    # Retreating units drop their target.
    kept = jnp.where(orders.picks[agents:], units.target[agents:], NOTHING)
    return orders, jnp.concatenate([target, kept]).astype(jnp.int8)


def settled_enemies(state: State, units: Units) -> Bool[Array, "K"]:
    """Enemies that have retreated to their starting point and are idle."""
    army = jnp.maximum(state.army, 0)
    way = units.position[state.agents :] - state.start[army]
    arrived = jnp.linalg.norm(way, axis=-1) <= SETTLED_DISTANCE
    return (state.settled | arrived) & ~state.attacking[army] & (state.army >= 0)


def apply_heal_bonus(rules: Rules, state: State, newly_beaten: Bool[Array, "M"]) -> Units:
    """The units after those of ours that are nearest to the start of a newly beaten army have been healed.

    Only if the enemy has more units; `Rules.heal_bonus` says by how much.
    """
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
