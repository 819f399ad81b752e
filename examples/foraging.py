"""Level-based foraging (the package `lbforaging`): agents collect foods, and heavy foods take several agents at once.

Every food is a subtask; `field.py` says what agents see.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import gymnasium
import numpy as np
from jaxtyping import PRNGKeyArray
from lbforaging.foraging import ForagingEnv

import alma
from alma.task.view import Actions, Allocation
from examples.field import REWARD, RULES, Field, scene_of, scripted, spec_of, view_of


@dataclass(eq=False)
class Foraging(alma.Simulator):
    """Level-based foraging: agents collect foods, and heavy foods take several agents at once."""

    env: str = "Foraging-8x8-4p-3f-v3"
    """Name at Gymnasium: size of the field, players, foods; with `-coop` every food takes several players."""

    metrics = ("foods",)

    def __post_init__(self) -> None:
        self.game = ForagingEnv(**gymnasium.spec(self.env).kwargs)
        self.size = self.game.rows

    @property
    def spec(self) -> alma.TaskSpec:
        game = self.game
        return spec_of(self.env.lower(), self.size, game.n_agents, game.max_num_food, game._max_episode_steps)

    @property
    def rules(self) -> Mapping[str, Callable[[alma.View], Allocation]]:
        return RULES

    @property
    def scripts(self) -> Mapping[str, Callable[[PRNGKeyArray, alma.View, Allocation], Actions]]:
        return {"scripted": scripted}

    def reset(self, seed: int) -> alma.View:
        for player in self.game.players:
            player.position = None  # where it stood in the last episode would be kept free
        self.game.reset(seed=seed)
        # There may be fewer foods than the most there can be, where no more have found a place.
        cells = np.argwhere(self.game.field > 0)
        self.foods = np.zeros((self.game.max_num_food, 2), int)
        self.foods[: len(cells)] = cells
        self.levels = np.zeros(len(self.foods), int)
        self.levels[: len(cells)] = self.game.field[tuple(cells.T)]
        return self._view()

    def step(self, actions: np.ndarray) -> tuple[alma.View, alma.Outcome]:
        before = self._left()
        _, rewards, over, _, _ = self.game.step(actions.tolist())
        newly = before & ~self._left()
        collected = not self._left().any()
        return self._view(), alma.Outcome(
            reward=REWARD * sum(rewards),
            subtask_rewards=(REWARD * newly * self.levels / self.levels.sum()).astype(np.float32),
            terminated=collected,
            truncated=over and not collected,
            finished=(self.levels > 0) & ~self._left(),
            success=collected,
            metrics={"foods": float(newly.sum())},
        )

    def _left(self) -> np.ndarray:
        return (self.levels > 0) & (self.game.field[tuple(self.foods.T)] > 0)

    def _view(self) -> alma.View:
        players = self.game.players
        agents = np.array([player.position for player in players])
        level = np.array([player.level for player in players])
        return view_of(Field(self.size, agents, level, self.foods, self.levels, self._left()))

    def scene(self, view: alma.View) -> alma.Scene:
        return scene_of(self.size, view)
