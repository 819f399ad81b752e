"""What is seen of level-based foraging: agents collect foods, and heavy foods take several agents at once.

Every food is a subtask. A view is computed from a `Field` of plain arrays, so that the same composition serves the
original in Python (`foraging.py`) and its JAX version in Jumanji (`jumanji_foraging.py`).
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

import alma
from alma.task.choice import choose_uniformly
from alma.task.view import Actions, Allocation
from examples.rules import nearest, together

ACTIONS = ("wait", "north", "south", "west", "east", "load")
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
"""What the actions 1 to 4 add to (row, column)."""
LOAD = 5
NEAR = 3
"""Offsets up to this many cells are one-hot relations; larger ones are clipped."""
OFFSETS = (
    "south",
    "east",
    "distance",
    "adjacent",
    *(f"south {cells:+d}" for cells in range(-NEAR, NEAR + 1)),
    *(f"east {cells:+d}" for cells in range(-NEAR, NEAR + 1)),
)
FEATURES = ("agent", "food", "level", "levels beside it", "enough beside it", "row", "column")
LEVEL, CELL = FEATURES.index("level"), slice(-2, None)
REWARD = 20.0
"""The sum of all rewards of an episode in which every food is collected; 1 in the original."""
HEAVIEST = 6
"""Levels are divided by this: foods are at most as heavy as three agents of level 2."""


@dataclass(frozen=True)
class Field:
    """A moment of the game, as NumPy or JAX arrays. Cells are (row, column)."""

    size: int
    agents: Any
    """Cells of the agents, A x 2."""
    agent_level: Any
    foods: Any
    """Cells of the foods, F x 2."""
    food_level: Any
    left: Any
    """Which foods have not been collected, F booleans."""


def spec_of(name: str, size: int, agents: int, foods: int, max_steps: int) -> alma.TaskSpec:
    return alma.TaskSpec(
        name=name,
        agents=agents,
        entities=agents + foods,
        subtasks=foods,
        actions=ACTIONS,
        features=FEATURES,
        relations=(*OFFSETS, "my share of its level", "light enough for me"),
        max_steps=max_steps,
        mask_subtask_actions=True,
        max_things=1,
        places=("row", "column"),
    )


def view_of(field: Field) -> alma.View:
    xp = field.agents.__array_namespace__()
    agents, foods = len(field.agents), len(field.foods)
    offset = field.foods[None] - field.agents[:, None]
    beside = (xp.sum(xp.abs(offset), axis=-1) == 1) & field.left
    present = xp.concatenate([xp.ones(agents, bool), field.left])
    available = _available(xp, field, offset, beside)
    # An agent between two foods loads both, so that its action is aimed at neither.
    one = xp.sum(beside, axis=1) == 1
    target = xp.where(one, agents + xp.argmax(beside, axis=1), -1)
    nothing = xp.full((agents, LOAD), -1)
    number = xp.where(field.left, xp.arange(foods), alma.NOBODY)
    return alma.View(
        entities=_entities(xp, field, beside),
        present=present,
        visible=xp.broadcast_to(present, (agents, agents + foods)),
        subtask=xp.concatenate([xp.full(agents, alma.NOBODY), number]).astype(xp.int32),
        active=field.left,
        available=available,
        target=xp.concatenate([nothing, target[:, None]], axis=1).astype(xp.int32),
        relations=_relations(xp, field, offset, present),
    )


def _available(xp: Any, field: Field, offset: Any, beside: Any) -> Any:
    """Waiting, steps that stay on the field and off the foods, and loading beside a food."""
    to = field.agents[:, None] + MOVES
    inside = xp.all((to >= 0) & (to < field.size), axis=-1)
    on_food = xp.any(xp.all(offset[:, None] == MOVES[None, :, None], axis=-1) & field.left, axis=-1)
    wait, load = xp.ones((len(to), 1), bool), xp.any(beside, axis=1)[:, None]
    return xp.concatenate([wait, inside & ~on_food, load], axis=1)


def _entities(xp: Any, field: Field, beside: Any) -> Any:
    helping = xp.sum(xp.where(beside, field.agent_level[:, None], 0), axis=0)
    levels = xp.concatenate([field.agent_level, xp.where(field.left, field.food_level, 0)]) / HEAVIEST
    none = xp.zeros(len(field.agents))
    enough = field.left & (helping >= field.food_level)
    cells = xp.concatenate([field.agents, xp.where(field.left[:, None], field.foods, 0)]) / field.size
    columns = [
        xp.concatenate([none + 1, xp.zeros(len(field.foods))]),
        xp.concatenate([none, field.left]),
        levels,
        xp.concatenate([none, helping / HEAVIEST]),
        xp.concatenate([none, enough]),
        *cells.T,
    ]
    return xp.stack(columns, axis=1).astype(xp.float32)


def _relations(xp: Any, field: Field, to_foods: Any, present: Any) -> Any:
    to_agents = field.agents[None] - field.agents[:, None]
    offset = xp.concatenate([to_agents, to_foods], axis=1) + field.size - 1
    geometry = xp.asarray(_offset_table(field.size))[offset[..., 0], offset[..., 1]]
    share = field.agent_level[:, None] / xp.maximum(field.food_level, 1)
    lifts = xp.stack([xp.minimum(share, 1), share >= 1], axis=-1)
    lifts = xp.concatenate([xp.zeros((*to_agents.shape[:2], 2)), lifts], axis=1)
    return xp.concatenate([geometry, lifts * present[:, None]], axis=-1).astype(xp.float32) * present[:, None]


@lru_cache
def _offset_table(size: int) -> np.ndarray:
    """The relations of every offset (rows, columns), which is faster than computing them in every step."""
    axis = np.arange(1 - size, size)
    south, east = (numbers[..., None] for numbers in np.meshgrid(axis, axis, indexing="ij"))
    distance = np.abs(south) + np.abs(east)
    cells = np.arange(-NEAR, NEAR + 1)
    columns = [south / size, east / size, distance / (2 * size), distance == 1]
    columns += [np.clip(number, -NEAR, NEAR) == cells for number in (south, east)]
    return np.concatenate(columns, axis=-1).astype(np.float32)


DISTANCE = OFFSETS.index("distance")
RULES = {"nearest": partial(nearest, distance=DISTANCE), "together": partial(together, distance=DISTANCE)}


def scripted(key: PRNGKeyArray, view: alma.View, allocation: Allocation) -> Actions:
    """Walk to one's food and load it; one step of ten is random, so that agents do not block each other for ever."""
    agents = len(allocation)
    mine = view.relations[jnp.arange(agents), agents + jnp.maximum(allocation, 0)]
    south, east = (mine[:, OFFSETS.index(name)] for name in ("south", "east"))
    load = jnp.where(mine[:, OFFSETS.index("adjacent")] > 0, jnp.inf, -jnp.inf)
    gain = jnp.stack([jnp.zeros(agents), -south, south, -east, east, load], axis=1)
    best = jnp.argmax(jnp.where(view.available, gain, -jnp.inf), axis=1)
    stumble_key, choice_key = jax.random.split(key)
    stumbles = jax.random.bernoulli(stumble_key, 0.1, (agents,)) | (allocation == alma.NOBODY)
    return jnp.where(stumbles, choose_uniformly(choice_key, view.available), best)


def scene_of(size: int, view: alma.View) -> alma.Scene:
    def marker(entity: int) -> alma.Marker | None:
        if not view.present[entity]:
            return None
        row, column = np.round(np.asarray(view.entities[entity, CELL], float) * size).tolist()
        level = str(round(float(view.entities[entity, LEVEL]) * HEAVIEST))
        name, shape = ("agent", "disc") if entity < len(view.available) else ("food", "square")
        return alma.Marker(name, (column + 0.5, size - row - 0.5), shape, 0.4, letter=level)

    standing = tuple("there" if left else "collected" for left in view.active)
    markers = tuple(marker(entity) for entity in range(len(view.present)))
    return alma.Scene((size, size), markers, grid=True, subtask="food", standing=standing)
