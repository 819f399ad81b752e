"""What a city looks like: agents by type, and buildings with their health, fire and time until the next fire."""

import numpy as np

from alma.task.scene import Marker, Point, Scene, Shape
from alma.tasks.save_the_city.dynamics import State
from alma.tasks.save_the_city.rules import ABSENT, AgentType, BuildingType, Rules

SHAPES: dict[AgentType, Shape] = {
    AgentType.FIREFIGHTER: "triangle",
    AgentType.BUILDER: "disc",
    AgentType.GENERALIST: "diamond",
}
HABITS = {BuildingType.FAST: "burns fast, seldom", BuildingType.SLOW: "burns slowly, often"}


def scene(rules: Rules, state: State) -> Scene:
    """The scene of one state."""
    agents, buildings = range(rules.max_agents), range(rules.max_buildings)
    return Scene(
        size=(rules.grid_size, rules.grid_size),
        markers=(*(_agent(state, i) for i in agents), *(_building(state, i) for i in buildings)),
        grid=True,
        subtask="building",
        standing=tuple(_standing(state, i) for i in buildings),
    )


def _middle(positions: object, index: int) -> Point:
    x, y = np.asarray(positions)[index]
    return float(x) + 0.5, float(y) + 0.5


def _agent(state: State, index: int) -> Marker | None:
    if state.agent_type[index] == ABSENT:
        return None
    kind = AgentType(int(state.agent_type[index]))
    return Marker(kind.name.lower(), _middle(state.agent_position, index), SHAPES[kind], 0.44, kind.name[0])


def _building(state: State, index: int) -> Marker | None:
    if state.building_type[index] == ABSENT:
        return None
    kind, health, fire = int(state.building_type[index]), float(state.health[index]), float(state.fire[index])
    until_fire = int(state.fire_timer[index]) / max(int(state.fire_interval[index]), 1)
    return Marker(
        "building",
        _middle(state.building_position, index),
        "square",
        0.48,
        bars={"health": health, "fire": fire},
        icons={
            "flame": fire,
            "clock": until_fire if 0 < health < 1 else 0,
            "tick": float(health >= 1),
            "cross": float(health <= 0),
        },
        status=f"{_standing(state, index)}, {HABITS[BuildingType(kind)]}",
    )


def _standing(state: State, index: int) -> str:
    if state.building_type[index] == ABSENT:
        return ""
    health = float(state.health[index])
    if health >= 1:
        return "complete"
    return "burned down" if health <= 0 else "on fire" if state.fire[index] > 0 else "unfinished"
