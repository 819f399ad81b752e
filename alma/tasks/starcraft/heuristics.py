"""Heuristic allocations and a scripted policy."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from alma.task.view import NOBODY, Actions, Allocation
from alma.tasks.starcraft.dynamics import FIRST_TARGET, MOVES, STOP, State, battle_status, distances_to_base, fighters
from alma.tasks.starcraft.rules import Rules
from alma.tasks.starcraft.view import view


def matching(rules: Rules, state: State, count_dead: bool = False) -> Allocation:
    """Agents, one after another, go to an army with an enemy of their own type that no agent is matched with yet; else
    to one without agents; else to the one that outnumbers us most. `count_dead` counts dead enemies too."""
    return _allocate(rules, state, jnp.zeros_like(state.attacking), count_dead)


def dynamic(rules: Rules, state: State, count_dead: bool = False) -> Allocation:
    """`matching`, but attacking armies come first."""
    return _allocate(rules, state, state.attacking, count_dead)


def most_urgent(rules: Rules, state: State) -> Allocation:
    """All agents go to the same army: the attacking one nearest to the base or, if none attacks, the nearest one."""
    agents, status = state.agents, battle_status(rules, state)
    dangerous = state.of_army & fighters(rules, state)[agents:]
    nearest = jnp.min(jnp.where(dangerous, distances_to_base(rules, state), jnp.inf), axis=1)
    attacked = status.active & (state.attacking | ~jnp.any(state.attacking & status.active))
    army = jnp.argmin(jnp.where(attacked, nearest, jnp.inf))
    return jnp.where(state.units.alive[:agents] & jnp.any(status.active), army, NOBODY)


def _allocate(rules: Rules, state: State, urgent: Bool[Array, "M"], count_dead: bool) -> Allocation:
    types, armies = len(rules.types), rules.max_armies
    units, agents = state.units, state.agents
    counted = (units.kind[agents:] >= 0) if count_dead else units.alive[agents:]
    of_army = state.of_army & counted
    of_type = units.kind[agents:, None] == np.arange(types)
    unclaimed = of_army.astype(jnp.int32) @ of_type.astype(jnp.int32)
    enemies, active = jnp.sum(of_army, axis=1), battle_status(rules, state).active

    def send(carry: tuple[Int[Array, "M T"], Int[Array, "M"]], agent: Int[Array, ""]) -> tuple:
        unclaimed, assigned = carry
        kind = jnp.maximum(units.kind[agent], 0)
        # Criteria in order of falling weight, so that the first one that differs between armies decides.
        score = 1e6 * urgent + 1e4 * (unclaimed[:, kind] > 0) + 1e2 * (assigned == 0) + enemies - assigned
        army = jnp.argmax(jnp.where(active, score, -jnp.inf))
        goes = units.alive[agent] & jnp.any(active)
        taken = (goes & (np.arange(armies) == army)).astype(jnp.int32)
        claimed = taken[:, None] * (np.arange(types) == kind)
        return (unclaimed - claimed, assigned + taken), jnp.where(goes, army, NOBODY)

    chosen: Int[Array, A]
    _, chosen = jax.lax.scan(send, (unclaimed, jnp.zeros(armies, jnp.int32)), state.order)
    return jnp.full(agents, NOBODY).at[state.order].set(chosen)


def scripted_actions(rules: Rules, key: PRNGKeyArray, state: State, allocation: Allocation) -> Actions:
    """Attack the army one is allocated to: shoot its weakest unit in range; healers heal the most damaged team mate."""
    seen, agents = view(rules, state), state.agents
    units = state.units
    army = jnp.asarray(allocation)
    group = jnp.concatenate([army, state.army])
    mine = (group[None, :] == army[:, None]) & (army[:, None] != NOBODY) & units.alive[None, :]
    table = rules.table
    kind = jnp.maximum(units.kind, 0)
    heals = jnp.asarray(table.heals)[kind[:agents]] > 0

    # Of enemies in range, the weakest; of team mates, the one with most missing health.
    left = units.health + units.shield
    lacks = jnp.asarray(table.health)[kind] - units.health
    target = jnp.maximum(seen.target[:, FIRST_TARGET:], 0)
    of_group = jnp.take_along_axis(mine, target, axis=1)
    damaged = ~heals[:, None] | (lacks[target] > 0)
    allowed = seen.available[:, FIRST_TARGET:] & of_group & damaged
    weakest = jnp.argmin(jnp.where(allowed, jnp.where(heals[:, None], -lacks[target], left[target]), jnp.inf), axis=1)

    # With nothing in range, walk towards the nearest enemy of the army, healers towards the nearest team mate.
    follows = mine & (heals[:, None] == (np.arange(len(kind)) < agents)[None, :])
    follows &= ~np.eye(agents, len(kind), dtype=bool)
    offset = units.position[None, :, :] - units.position[:agents, None, :]
    distance = jnp.sum(offset**2, axis=-1)
    nearest = jnp.argmin(jnp.where(follows, distance, jnp.inf), axis=1)
    way = jnp.take_along_axis(offset, nearest[:, None, None], axis=1)[:, 0]
    gain = jnp.where(seen.available[:, 1:FIRST_TARGET], way @ MOVES.T, -jnp.inf)
    walks = jnp.any(follows, axis=1) & (jnp.sum(way**2, axis=-1) > 1)
    move = jnp.where(walks, 1 + jnp.argmax(gain, axis=1), STOP)
    return jnp.where(jnp.any(allowed, axis=1), FIRST_TARGET + weakest, move)
