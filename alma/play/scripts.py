"""Scripted actors, and random ones."""

from functools import partial
from typing import Any

from jaxtyping import PRNGKeyArray

from alma.nn.choice import choose_uniformly
from alma.play.situation import Policy, Situation
from alma.task.task import Task
from alma.task.view import Actions, available_under


def policy_by_name(task: Task, name: str) -> Policy:
    """One of the task's scripted policies, or `random`."""
    if name == "random":
        return partial(random_policy, task)
    script = task.policies.get(name)
    if script is None:
        raise ValueError(f"unknown policy {name!r}: choose from {', '.join(['random', *task.policies])}")
    return lambda params, key, situation: script(key, situation.state, situation.allocation)


def random_policy(task: Task, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
    """A random available action for every agent."""
    view = situation.view
    available = available_under(view, situation.allocation) if task.spec.mask_subtask_actions else view.available
    return choose_uniformly(key, available)
