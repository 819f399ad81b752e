"""StarCraft base defence: armies attack a base from several sides; every army is a subtask."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from jaxtyping import PRNGKeyArray

from alma.task.outcome import Outcome
from alma.task.scene import Scene
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import Actions, Allocation, View
from alma.tasks.starcraft import dynamics, heuristics, scenarios
from alma.tasks.starcraft import scene as scenery
from alma.tasks.starcraft import view as seeing
from alma.tasks.starcraft.dynamics import State
from alma.tasks.starcraft.overrides import PRESET_OVERRIDES
from alma.tasks.starcraft.rules import Rules

__all__ = ["PRESET_OVERRIDES", "Rules", "StarCraft", "State"]


@dataclass(frozen=True)
class StarCraft(Task[State]):
    """The paper's second environment, reimplemented as a simulator in JAX."""

    rules: Rules = field(default_factory=Rules)

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(
            name="starcraft",
            agents=self.rules.max_agents,
            entities=self.rules.max_agents + self.rules.max_enemies,
            subtasks=self.rules.max_armies,
            actions=seeing.action_names(self.rules),
            features=seeing.feature_names(self.rules),
            relations=seeing.RELATIONS,
            max_steps=self.rules.max_steps,
            mask_subtask_actions=True,
            max_things=self.rules.max_army_size,
            max_targets=self.rules.max_targets,
        )

    def reset(self, key: PRNGKeyArray) -> State:
        return scenarios.draw_battle(self.rules, key)

    def step(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
        return dynamics.step(self.rules, key, state, actions)

    def view(self, state: State) -> View:
        return seeing.view(self.rules, state)

    @property
    def heuristics(self) -> Mapping[str, Callable[[State], Allocation]]:
        return {
            "matching": partial(heuristics.matching, self.rules),
            "dynamic": partial(heuristics.dynamic, self.rules),
            "most-urgent": partial(heuristics.most_urgent, self.rules),
            "matching-with-dead": partial(heuristics.matching, self.rules, count_dead=True),
            "dynamic-with-dead": partial(heuristics.dynamic, self.rules, count_dead=True),
        }

    @property
    def policies(self) -> Mapping[str, Callable[[PRNGKeyArray, State, Allocation], Actions]]:
        return {"scripted": partial(heuristics.scripted_actions, self.rules)}

    def scene(self, state: State) -> Scene:
        return scenery.scene(self.rules, state)
