"""Battles set up by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from alma.tasks.starcraft import StarCraft
from alma.tasks.starcraft.combat import NOTHING, Orders, fight, unpack
from alma.tasks.starcraft.dynamics import State
from alma.tasks.starcraft.rules import Rules
from alma.tasks.starcraft.scenarios import _fresh_units
from alma.tasks.starcraft.units import UNITS

ALL = Rules(units="+".join(UNITS), fighters=4, medivacs=(0, 0))
"""Rules with all unit types."""
KIND = {name: i for i, name in enumerate(ALL.types)}


def units(*placed, rules=ALL):
    """Units from (type, x, y)."""
    kind = jnp.asarray([rules.types.index(name) for name, _, _ in placed])
    return _fresh_units(rules, kind, jnp.asarray([(x, y) for _, x, y in placed], jnp.float32))


def place(units, which, x, y):
    """The units with one of them moved to (x, y)."""
    return replace(units, x=units.x.at[which].set(x), y=units.y.at[which].set(y))


def orders(units, ours, targets=None, goals=None, picks=None, idle=None):
    """Orders, and the units with their targets; the first `ours` units are ours. Without target and goal they stay."""
    count = len(units.kind)
    no = jnp.zeros(count, bool)
    walks = no if goals is None else jnp.asarray([goal is not None for goal in goals])
    where = units.position
    if goals is not None:
        where = jnp.asarray([p if g is None else g for g, p in zip(goals, units.position.tolist(), strict=True)])
    given = jnp.full(count, NOTHING) if targets is None else jnp.asarray(targets)
    told = Orders(
        goal_x=jnp.asarray(where, jnp.float32)[:, 0],
        goal_y=jnp.asarray(where, jnp.float32)[:, 1],
        walks=walks,
        picks=no if picks is None else jnp.asarray(picks),
        idle=no if idle is None else jnp.asarray(idle),
        ours=jnp.arange(count) < ours,
    )
    return told, replace(units, target=given)


def run(units, told, loops, rules=ALL, seed=0, jitter=True):
    """The units after a number of game loops, with or without jitter."""
    return run_story(units, told, loops, rules, seed, jitter)[-1]


def run_story(units, told, loops, rules=ALL, seed=0, jitter=True):
    """The units before the first and after every game loop."""
    one = _one_loop(rules, jitter)
    story, key = [units], jax.random.key(seed)
    for loop in range(loops):
        story.append(one(jax.random.fold_in(key, loop), story[-1], told))
    return story


_compiled = {}


def _one_loop(rules, jitter):
    if (rules, jitter) not in _compiled:

        def loop(key, units, told):
            after = fight(rules.types, key, units, told, 1, rules.map_size)
            if jitter:
                return after
            # Remove the jitter: a shot adds exactly the period to the cooldown.
            fired = after.cooldown > units.cooldown
            period = jnp.asarray(rules.table.period)[jnp.maximum(units.kind, 0)]
            exact = jnp.where(fired, units.cooldown + period - 1, after.cooldown)
            return replace(after, cooldown=exact.astype(after.cooldown.dtype))

        _compiled[rules, jitter] = jax.jit(loop)
    return _compiled[rules, jitter]


def a_state(rules, ours, theirs, army=None, start=None):
    """The state of a battle with these units in the first slots; all armies retreat and nothing has happened yet."""
    task = StarCraft(rules)
    state = task.reset(jax.random.key(0))
    agents, enemies = rules.max_agents, rules.max_enemies
    kind = np.full(agents + enemies, -1)
    position = np.zeros((agents + enemies, 2), np.float32)
    for first, placed in ((0, ours), (agents, theirs)):
        for slot, (name, x, y) in enumerate(placed):
            kind[first + slot] = rules.types.index(name)
            position[first + slot] = (x, y)
    army = [0] * len(theirs) if army is None else army
    members = np.full(enemies, -1)
    members[: len(theirs)] = army
    if start is None:
        start = [[16.0, 30.0], [2.0, 16.0], [30.0, 16.0]]
    return replace(
        state,
        units=_fresh_units(rules, jnp.asarray(kind, jnp.int8), jnp.asarray(position)),
        army=jnp.asarray(members, jnp.int8),
        start=jnp.asarray(start, jnp.float32),
        attacking=jnp.zeros_like(state.attacking),
        timer=jnp.full_like(state.timer, 100),
        since_switch=jnp.zeros_like(state.since_switch),
        settled=jnp.asarray(members >= 0),
        moved=jnp.zeros_like(state.moved),
        order=jnp.arange(agents, dtype=jnp.int8),
    )


__all__ = ["ALL", "KIND", "State", "a_state", "orders", "place", "run", "run_story", "units", "unpack"]
