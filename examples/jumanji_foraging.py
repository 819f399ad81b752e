"""Level-based foraging in JAX (the package `jumanji`): an environment of another JAX library as a task.

Jumanji's environments are pure functions of a state already, so that nothing but names has to be adapted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray
from jumanji.environments.routing.lbf.env import LevelBasedForaging
from jumanji.environments.routing.lbf.generator import RandomGenerator
from jumanji.environments.routing.lbf.types import State

import alma
from alma.task.view import Actions, Allocation
from examples.field import REWARD, RULES, Field, scene_of, scripted, spec_of, view_of


@dataclass(frozen=True)
class JumanjiForaging(alma.Task[State]):
    """Level-based foraging: every food is a subtask, and heavy foods take several agents."""

    size: int = 8
    """Rows and columns of the field."""
    agents: int = 4
    foods: int = 3
    cooperate: bool = False
    """All foods are as heavy as three agents; otherwise levels are drawn from 1 up to that."""
    max_steps: int = 50

    @property
    def env(self) -> LevelBasedForaging:
        return _environment(self)

    @property
    def spec(self) -> alma.TaskSpec:
        return spec_of("jumanji-foraging", self.size, self.agents, self.foods, self.max_steps)

    def reset(self, key: PRNGKeyArray) -> State:
        return self.env.reset(key)[0]

    def step(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, alma.Outcome]:
        after, timestep = self.env.step(state, actions)
        newly = after.food_items.eaten & ~state.food_items.eaten
        levels = state.food_items.level
        done = jnp.all(after.food_items.eaten)
        return after, alma.Outcome(
            reward=REWARD * jnp.sum(timestep.reward),
            subtask_rewards=REWARD * newly * levels / jnp.sum(levels),
            terminated=done,
            truncated=~done & (after.step_count >= self.max_steps),
            finished=after.food_items.eaten,
            success=done,
            metrics={"foods": jnp.sum(newly).astype(jnp.float32)},
        )

    def view(self, state: State) -> alma.View:
        return view_of(_field(self.size, state))

    @property
    def heuristics(self) -> Mapping[str, Callable[[State], Allocation]]:
        return {name: lambda state, rule=rule: rule(self.view(state)) for name, rule in RULES.items()}

    @property
    def policies(self) -> Mapping[str, Callable[[PRNGKeyArray, State, Allocation], Actions]]:
        return {"scripted": lambda key, state, allocation: scripted(key, self.view(state), allocation)}

    def scene(self, state: State) -> alma.Scene:
        return scene_of(self.size, self.view(state))


@lru_cache
def _environment(task: JumanjiForaging) -> LevelBasedForaging:
    with jax.ensure_compile_time_eval():  # it looks at values of JAX arrays when it is made
        generator = RandomGenerator(task.size, task.agents, task.foods, fov=task.size, force_coop=task.cooperate)
        return LevelBasedForaging(generator, time_limit=task.max_steps)


def _field(size: int, state: State) -> Field:
    agents, foods = state.agents, state.food_items
    return Field(size, agents.position, agents.level, foods.position, foods.level, ~foods.eaten)
