"""Actors that follow a scripted policy or act at random."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import PRNGKeyArray

from alma.play.situation import Situation
from alma.play.team import ScriptedActors
from alma.task.choice import choose_uniformly
from alma.task.task import Task
from alma.task.view import Actions, available_under


def scripted_actors(task: Task, name: str) -> ScriptedActors:
    """Actors that follow the scripted policy of this name of the task, or uniformly random ones (`random`)."""
    if name == "random":
        return ScriptedActors(RandomActions(task))
    if name not in task.policies:
        raise ValueError(f"unknown policy {name!r}: choose from {', '.join(['random', *task.policies])}")
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
