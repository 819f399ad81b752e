"""What a battle looks like: units by type and side, their health and shields, shots, and whether armies attack."""

from functools import partial

import jax
import numpy as np

from alma.task.scene import Line, Marker, Place, Scene, Shape
from alma.tasks.starcraft.dynamics import BattleStatus, State, battle_status
from alma.tasks.starcraft.rules import LOOPS_PER_STEP, Rules
from alma.tasks.starcraft.units import ENERGY_MAX

LETTERS = {"marauder": "R", "medivac": "+"}
"""Letters of types for which the first letter of the name would be ambiguous or unclear."""
SMALLEST = 0.5
"""Minimum radius at which units are drawn, in cells."""

_battle_status = jax.jit(battle_status, static_argnums=0)


def scene(rules: Rules, state: State) -> Scene:
    """The scene of one state."""
    status, armies = jax.device_get(_battle_status(rules, state)), range(rules.max_armies)
    units = range(rules.max_agents + rules.max_enemies)
    lines = map(partial(_line, rules, state), units)
    return Scene(
        size=(rules.map_size, rules.map_size),
        markers=tuple(_unit(rules, state, unit) for unit in units),
        places=(
            Place((rules.map_size / 2, rules.map_size / 2), rules.base_radius, "base"),
            *(_start(state, status, army) for army in armies),
        ),
        lines=tuple(line for line in lines if line is not None),
        subtask="army",
        standing=tuple(_standing(state, status, army) for army in armies),
    )


def _unit(rules: Rules, state: State, unit: int) -> Marker | None:
    units, table, kind = state.units, rules.table, int(state.units.kind[unit])
    if units.health[unit] <= 0:
        return None
    name, ours = rules.types[kind], unit < state.agents
    bars = {"health": float(units.health[unit] / table.health[kind])}
    if table.shield[kind]:
        bars["shield"] = float(units.shield[unit] / table.shield[kind])
    if table.heals[kind] and ours:
        bars["energy"] = float(units.energy[unit]) / ENERGY_MAX
    shape: Shape = "disc" if ours else "square"
    at = float(units.x[unit]), float(units.y[unit])
    radius = max(float(table.radius[kind]), SMALLEST)
    return Marker(name if ours else f"enemy {name}", at, shape, radius, LETTERS.get(name, name[0].upper()), bars)


def _line(rules: Rules, state: State, unit: int) -> Line | None:
    """A line to the unit that this one shot at in the last step, or that it is healing."""
    units, table, kind = state.units, rules.table, int(state.units.kind[unit])
    if units.health[unit] <= 0:
        return None
    if table.heals[kind]:
        target = int(units.target[unit])
        return Line(unit, target, "help") if target >= 0 else None
    fired = table.fights[kind] and float(units.cooldown[unit]) > table.period[kind] - LOOPS_PER_STEP
    target = int(units.hit_target[unit])
    return Line(unit, target) if fired and target >= 0 else None


def _start(state: State, status: BattleStatus, army: int) -> Place:
    x, y = np.asarray(state.start)[army]
    there = bool(np.any(np.asarray(state.army) == army))
    return Place((float(x), float(y)), 1.2 if there else 0, _standing(state, status, army), army)


def _standing(state: State, status: BattleStatus, army: int) -> str:
    if not np.any(np.asarray(state.army) == army):
        return ""
    if status.beaten[army]:
        return "beaten"
    return "in the base" if status.breached[army] else "attacks" if state.attacking[army] else "retreats"
