"""Actors that follow a script: a scripted policy of the task, or random actions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from jaxtyping import PRNGKeyArray

from alma.play.situation import Situation
from alma.task.choice import choose_uniformly
from alma.task.task import Task
from alma.task.view import Actions, available_under

Script: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Actions]
"""A rule that acts: (parameters, key, situation) -> actions. Rules that were not learned ignore the parameters."""


@dataclass(frozen=True)
class ScriptedActors:
    """Actors that follow a script and do not learn."""

    script: Script

    knows_subtasks: ClassVar[bool] = True
    is_coached: ClassVar[bool] = False

    def greedy(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
        return self.script(params, key, situation)

    def advise_best(self, params: Any, key: PRNGKeyArray, situation: Situation) -> None:
        return None

    def explain_actions(self, params: Any, key: PRNGKeyArray, situation: Situation) -> None:
        return None


def scripted_actors(task: Task, name: str) -> ScriptedActors:
    """Actors that follow the scripted policy of this name of the task, or uniformly random ones (`random`)."""
    if name == "random":
        return ScriptedActors(RandomActions(task))
    if name not in task.policies:
        raise ValueError(f"unknown actors {name!r}: choose from {', '.join(['random', *task.policies])}")
    return ScriptedActors(TaskScript(task, name))


@dataclass(frozen=True)
class TaskScript:
    """One of the task's scripted policies, by name."""

    task: Task
    name: str

    def __call__(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
        return self.task.policies[self.name](key, situation.state, situation.allocation)


@dataclass(frozen=True)
class RandomActions:
    """A uniformly random available action for every agent."""

    task: Task

    def __call__(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
        view, masked = situation.view, self.task.spec.mask_subtask_actions
        return choose_uniformly(key, available_under(view, situation.allocation) if masked else view.available)
