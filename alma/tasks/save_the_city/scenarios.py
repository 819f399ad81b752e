"""Initial states: drawn at random, or set up by hand."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int8, Int16, PRNGKeyArray

from alma.tasks.save_the_city.dynamics import State
from alma.tasks.save_the_city.rules import ABSENT, AgentType, BuildingType, Rules


@lru_cache
def teams(rules: Rules) -> np.ndarray:
    """All possible teams, teams x A: agent types in ascending order, padded with `ABSENT`.

    A team of N agents is a multiset of agent types with min(3, N) different ones.
    """
    rows = []
    smallest, largest = rules.team_sizes
    for size in range(smallest, largest + 1):
        for firefighters in range(size + 1):
            for builders in range(size - firefighters + 1):
                counts = (firefighters, builders, size - firefighters - builders)
                if np.count_nonzero(counts) >= min(len(AgentType), size):
                    types = np.repeat(list(AgentType), counts)
                    rows.append(np.pad(types, (0, largest - size), constant_values=ABSENT))
    return np.array(rows, np.int8)


def sites(rules: Rules) -> np.ndarray:
    """The cells where buildings can stand, sites x 2."""
    axis = rules.site_coordinates
    return np.array([(x, y) for x in axis for y in axis], np.int8)


@lru_cache
def start_cells(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Cells a team can start on (cells x 2), and which of them a team of each size uses (sizes x cells).

    A team of N starts in the smallest centred square with at least N cells that are not sites.
    """
    middle = rules.grid_size // 2
    axis = range(middle - _start_radius(rules, rules.max_agents), middle + _start_radius(rules, rules.max_agents))
    cells = np.array([(x, y) for x in axis for y in axis if not _is_site(rules, x, y)], np.int8)
    ring = np.max(np.maximum(cells - middle + 1, middle - cells), axis=1)
    used = np.array([ring <= _start_radius(rules, size) for size in range(rules.max_agents + 1)])
    return cells, used


def _start_radius(rules: Rules, team_size: int) -> int:
    middle = rules.grid_size // 2
    for radius in range(1, middle + 1):
        axis = range(middle - radius, middle + radius)
        if sum(not _is_site(rules, x, y) for x in axis for y in axis) >= team_size:
            return radius
    raise ValueError(f"a map of {rules.grid_size} cells a side is too small for {team_size} agents")


def _is_site(rules: Rules, x: int, y: int) -> bool:
    return x in rules.site_coordinates and y in rules.site_coordinates


def draw_scenario(rules: Rules, key: PRNGKeyArray) -> State:
    """Draw the initial state of an episode: a team, its starting cells, and buildings."""
    team_key, start_key, site_key, building_key = jax.random.split(key, 4)
    table = jnp.asarray(teams(rules))
    agent_type = table[jax.random.randint(team_key, (), 0, len(table))]
    agent_present = agent_type != ABSENT
    size = jnp.sum(agent_present)
    building_present = jnp.arange(rules.max_buildings) <= size

    cells, used = start_cells(rules)
    start = _draw_distinct(start_key, jnp.asarray(used)[size], rules.max_agents)
    all_sites = jnp.asarray(sites(rules))
    site = _draw_distinct(site_key, jnp.ones(len(all_sites), bool), rules.max_buildings)
    kind, health, fire, interval = _draw_buildings(rules, building_key)
    return State(
        agent_type=agent_type,
        agent_position=jnp.where(agent_present[:, None], jnp.asarray(cells)[start], 0),
        building_type=jnp.where(building_present, kind, ABSENT),
        building_position=jnp.where(building_present[:, None], all_sites[site], 0),
        health=jnp.where(building_present, health, 0),
        fire=jnp.where(building_present, fire, 0),
        fire_interval=jnp.where(building_present, interval, 0),
        fire_timer=jnp.where(building_present, interval, 0),
        time=jnp.zeros((), jnp.int16),
    )


def _draw_distinct(key: PRNGKeyArray, allowed: Bool[Array, "N"], count: int) -> Int[Array, "count"]:
    """Indices of `count` distinct allowed items in random order; if fewer are allowed, the rest is arbitrary."""
    rank = jnp.where(allowed, jax.random.uniform(key, allowed.shape), -1)
    return jax.lax.top_k(rank, count)[1]


def _draw_buildings(
    rules: Rules, key: PRNGKeyArray
) -> tuple[Int8[Array, "B"], Float32[Array, "B"], Float32[Array, "B"], Int16[Array, "B"]]:
    """Types, health, fires and fire intervals of `max_buildings` buildings."""
    draws = jax.random.uniform(key, (5, rules.max_buildings))
    slow = draws[0] < 0.5
    interval = jnp.where(slow, _integer(draws[1], rules.slow_interval), _integer(draws[1], rules.fast_interval))
    low, high = (start + draws[3] * (end - start) for start, end in (rules.low_health, rules.high_health))
    kind = jnp.where(slow, BuildingType.SLOW, BuildingType.FAST)
    return (
        kind.astype(jnp.int8),
        jnp.where(draws[2] < 0.5, low, high),
        (draws[4] < rules.start_on_fire).astype(jnp.float32),
        interval.astype(jnp.int16),
    )


def _integer(draw: Float32[Array, "B"], bounds: tuple[int, int]) -> Int[Array, "B"]:
    """Map uniform numbers in [0, 1) to integers between the bounds, inclusive."""
    low, high = bounds
    return jnp.minimum(low + jnp.floor(draw * (high - low + 1)).astype(jnp.int32), high)


class Agent(NamedTuple):
    """An agent of a state that is set up by hand."""

    type: AgentType
    position: tuple[int, int]


class Building(NamedTuple):
    """A building of a state that is set up by hand."""

    position: tuple[int, int]
    type: BuildingType = BuildingType.FAST
    health: float = 0.5
    fire: float = 0.0
    interval: int = 70
    timer: int | None = None
    """Steps until the next fire; the whole interval by default."""


def place(rules: Rules, agents: Sequence[Agent], buildings: Sequence[Building], time: int = 0) -> State:
    """Set up a state by hand; the remaining slots are empty."""
    if not 1 <= len(agents) <= rules.max_agents or not 1 <= len(buildings) <= rules.max_buildings:
        raise ValueError(
            f"these rules have room for 1 to {rules.max_agents} agents and 1 to {rules.max_buildings} buildings, "
            f"not {len(agents)} and {len(buildings)}"
        )
    cells = [tuple(agent.position) for agent in agents] + [tuple(building.position) for building in buildings]
    if len(set(cells)) < len(cells):
        raise ValueError(f"two entities cannot share a cell: {sorted(cells)}")
    if any(not 0 <= number < rules.grid_size for cell in cells for number in cell):
        raise ValueError(f"cells must lie between 0 and {rules.grid_size - 1}: {sorted(cells)}")
    if any(not _is_site(rules, *building.position) for building in buildings):
        raise ValueError(f"both coordinates of a building must be one of {rules.site_coordinates}")
    for building in buildings:
        timer = building.interval if building.timer is None else building.timer
        if not (0 <= building.health <= 1 and 0 <= building.fire <= 1 and 1 <= timer <= building.interval):
            raise ValueError(f"health and fire lie between 0 and 1, the timer between 1 and the interval: {building}")

    def padded(values: list, slots: int, dtype: type, fill: int = 0) -> Array:
        array: np.ndarray = np.asarray(values, dtype)
        padding = [(0, slots - len(values))] + [(0, 0)] * (array.ndim - 1)
        return jnp.asarray(np.pad(array, padding, constant_values=fill))

    timers = [building.interval if building.timer is None else building.timer for building in buildings]
    a, b = rules.max_agents, rules.max_buildings
    return State(
        agent_type=padded([agent.type for agent in agents], a, np.int8, ABSENT),
        agent_position=padded([agent.position for agent in agents], a, np.int8),
        building_type=padded([building.type for building in buildings], b, np.int8, ABSENT),
        building_position=padded([building.position for building in buildings], b, np.int8),
        health=padded([building.health for building in buildings], b, np.float32),
        fire=padded([building.fire for building in buildings], b, np.float32),
        fire_interval=padded([building.interval for building in buildings], b, np.int16),
        fire_timer=padded(timers, b, np.int16),
        time=jnp.asarray(time, jnp.int16),
    )
