"""SaveTheCity: agents of three types put out fires and rebuild a burning city; every building is a subtask."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from jaxtyping import PRNGKeyArray

from alma.task.outcome import Outcome
from alma.task.scene import Scene
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import Actions, Allocation, View
from alma.tasks.save_the_city import dynamics, heuristics, scenarios
from alma.tasks.save_the_city import scene as scenery
from alma.tasks.save_the_city import view as seeing
from alma.tasks.save_the_city.dynamics import State
from alma.tasks.save_the_city.rules import Action, Rules

__all__ = ["Action", "Rules", "SaveTheCity", "State"]


@dataclass(frozen=True)
class SaveTheCity(Task[State]):
    """The paper's first environment. Every building is a subtask."""

    rules: Rules = field(default_factory=Rules)

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(
            name="save-the-city",
            agents=self.rules.max_agents,
            entities=self.rules.max_agents + self.rules.max_buildings,
            subtasks=self.rules.max_buildings,
            actions=tuple(action.name.lower().replace("_", " ") for action in Action),
            features=seeing.feature_names(self.rules),
            relations=seeing.RELATIONS,
            max_steps=self.rules.max_steps,
            mask_subtask_actions=False,
            max_things=1,
            places=seeing.place_names(self.rules),
        )

    def reset(self, key: PRNGKeyArray) -> State:
        return scenarios.draw_scenario(self.rules, key)

    def step(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
        return dynamics.step(self.rules, key, state, actions)

    def view(self, state: State) -> View:
        return seeing.view(self.rules, state)

    @property
    def heuristics(self) -> Mapping[str, Callable[[State], Allocation]]:
        return {
            "nearest-useful": heuristics.nearest_useful,
            "most-urgent": partial(heuristics.most_urgent, self.rules),
        }

    @property
    def policies(self) -> Mapping[str, Callable[[PRNGKeyArray, State, Allocation], Actions]]:
        return {"scripted": partial(heuristics.scripted_actions, self.rules)}

    def scene(self, state: State) -> Scene:
        return scenery.scene(self.rules, state)
