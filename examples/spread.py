"""Simple spread (the package `mpe2`), an environment of PettingZoo: agents cover landmarks, one each.

Every landmark is a subtask, which does not finish: the episode is over when all are covered at once. Everything is read
from what agents observe.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from mpe2 import simple_spread_v3

import alma
from alma.task.view import Actions, Allocation
from examples.rules import closest_first, nearest

ACTIONS = ("wait", "west", "east", "south", "north")
FEATURES = ("agent", "landmark", "covered", "distance to the nearest agent", "speed east", "speed north", "x", "y")
WAIT, WEST, EAST, SOUTH, NORTH = range(5)
SPEED, PLACE = slice(4, 6), slice(-2, None)
RELATIONS = (
    "east",
    "north",
    "distance",
    "covers",
    "collides",
    "east of it",
    "west of it",
    "north of it",
    "south of it",
)
DISTANCE = RELATIONS.index("distance")
COVERED = 0.1
"""A landmark is covered by an agent that is nearer than this."""
COLLISION = 0.3
"""Agents that are nearer than this collide."""
REWARD = 0.5
"""What rewards are multiplied with."""


@dataclass(eq=False)
class Spread(alma.Simulator):
    """Agents have to cover as many landmarks, all at once."""

    agents: int = 4
    """Number of agents, and of landmarks."""
    max_steps: int = 40
    """Time limit in steps."""

    metrics = ("covered",)

    def __post_init__(self) -> None:
        self.game = simple_spread_v3.parallel_env(N=self.agents, max_cycles=self.max_steps, terminate_on_success=True)

    @property
    def spec(self) -> alma.TaskSpec:
        return alma.TaskSpec(
            name="spread",
            agents=self.agents,
            entities=2 * self.agents,
            subtasks=self.agents,
            actions=ACTIONS,
            features=FEATURES,
            relations=RELATIONS,
            max_steps=self.max_steps,
            mask_subtask_actions=False,
            max_things=1,
            places=("x", "y"),
        )

    @property
    def rules(self) -> Mapping[str, Callable[[alma.View], Allocation]]:
        rules = {"closest-first": closest_first, "nearest": nearest}
        return {name: partial(rule, distance=DISTANCE) for name, rule in rules.items()}

    @property
    def scripts(self) -> Mapping[str, Callable[[PRNGKeyArray, alma.View, Allocation], Actions]]:
        return {"scripted": scripted}

    def reset(self, seed: int) -> alma.View:
        observations, _ = self.game.reset(seed=seed)
        return self._view(observations)

    def step(self, actions: np.ndarray) -> tuple[alma.View, alma.Outcome]:
        chosen = dict(zip(self.game.agents, actions.tolist(), strict=True))
        observations, rewards, terminated, truncated, _ = self.game.step(chosen)
        view = self._view(observations)
        landmarks = view.entities[self.agents :]
        covered = landmarks[:, FEATURES.index("covered")]
        solved = all(terminated.values())
        return view, alma.Outcome(
            # As in the environment: half of it is the distance that landmarks are from the nearest agent, the other
            # half what collisions cost. Landmarks themselves know of no collisions.
            reward=REWARD * float(np.mean(list(rewards.values()))),
            subtask_rewards=-REWARD / 2 * landmarks[:, FEATURES.index("distance to the nearest agent")],
            terminated=solved,
            truncated=not solved and all(truncated.values()),
            finished=np.full(self.agents, solved),
            success=solved,
            metrics={"covered": float(covered.mean() / self.max_steps)},
        )

    def _view(self, observations: Mapping[str, np.ndarray]) -> alma.View:
        """What is seen, from what agents observe: their velocity, their place, and the offsets of landmarks."""
        seen, agents = np.stack(list(observations.values())), self.agents
        velocity, place = seen[:, :2], seen[:, 2:4]
        places = np.concatenate([place, place[0] + seen[0, 4 : 4 + 2 * agents].reshape(-1, 2)])
        offset = places[None] - place[:, None]
        distance = np.linalg.norm(offset, axis=-1)
        closest = distance[:, agents:].min(axis=0)
        entities = np.zeros((2 * agents, len(FEATURES)), np.float32)
        entities[:agents, 0], entities[agents:, 1] = 1, 1
        entities[agents:, 2], entities[agents:, 3] = closest < COVERED, closest
        entities[:agents, SPEED] = velocity
        entities[:, PLACE] = places
        is_agent = np.arange(2 * agents) < agents
        east, north = offset[..., 0], offset[..., 1]
        beyond = [east < -COVERED / 2, east > COVERED / 2, north < -COVERED / 2, north > COVERED / 2]
        close = [(distance < COVERED) & ~is_agent, (distance < COLLISION) & is_agent & (distance > 0)]
        over = bool((closest < COVERED).all())
        return alma.View(
            entities=entities,
            present=np.ones(2 * agents, bool),
            visible=np.ones((agents, 2 * agents), bool),
            subtask=np.concatenate([np.full(agents, alma.NOBODY), np.arange(agents)]),
            active=np.full(agents, not over),
            available=np.ones((agents, len(ACTIONS)), bool),
            target=np.full((agents, len(ACTIONS)), -1),
            relations=np.stack([east, north, distance, *close, *beyond], axis=-1).astype(np.float32),
        )

    def scene(self, view: alma.View) -> alma.Scene:
        def marker(entity: int) -> alma.Marker:
            x, y = (np.clip(np.asarray(view.entities[entity, PLACE], float), -2, 2) + 2).tolist()
            is_agent = entity < self.agents
            return (
                alma.Marker("agent", (x, y), "disc", 0.15)
                if is_agent
                else alma.Marker("landmark", (x, y), "square", 0.1)
            )

        standing = tuple("covered" if done else "free" for done in view.entities[self.agents :, 2])
        markers = tuple(marker(entity) for entity in range(2 * self.agents))
        return alma.Scene((4, 4), markers, subtask="landmark", standing=standing)


def scripted(key: PRNGKeyArray, view: alma.View, allocation: Allocation) -> Actions:
    """Go to one's landmark along the longer way, and slow down before it."""
    agents = len(allocation)
    offset = view.relations[jnp.arange(agents), agents + jnp.maximum(allocation, 0), :2]
    # Thrust and friction of the environment: after this share of its speed, an agent has come to rest.
    east, north = (offset - 0.25 * view.entities[:agents, SPEED]).T
    horizontal, vertical = jnp.where(east > 0, EAST, WEST), jnp.where(north > 0, NORTH, SOUTH)
    there = jnp.maximum(jnp.abs(east), jnp.abs(north)) < COVERED / 2
    return jnp.where(there, WAIT, jnp.where(jnp.abs(east) > jnp.abs(north), horizontal, vertical))
