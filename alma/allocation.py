"""Allocators: who gives every agent a subtask. All share one interface, so that any can be put on any actors."""

from typing import Any

from jaxtyping import PRNGKeyArray

from alma.choice import choose_uniformly
from alma.rollout import Allocator, Situation
from alma.task import Allocation, Task


def heuristic(task: Task, name: str = "") -> Allocator:
    """One of the task's own rules; its first one by default."""
    if not task.heuristics:
        raise ValueError(f"the task {task.spec.name!r} has no heuristic allocation: use another allocator")
    rule = task.heuristics.get(name or next(iter(task.heuristics)))
    if rule is None:
        raise ValueError(
            f"the task {task.spec.name!r} has no heuristic {name!r}: choose from {', '.join(task.heuristics)}"
        )
    return lambda params, key, situation: rule(situation.state)


def uniform(params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
    """Every present agent takes an active subtask at random."""
    view, agents = situation.view, len(situation.allocation)
    allowed = view.present[:agents, None] & view.active[None, :]
    return choose_uniformly(key, allowed)


def allocator_by_name(task: Task, name: str) -> Allocator:
    """`heuristic`, `heuristic:NAME` or `random`."""
    kind, _, which = name.partition(":")
    if kind == "heuristic":
        return heuristic(task, which)
    if name == "random":
        return uniform
    rules = [f"heuristic:{rule}" for rule in task.heuristics]
    raise ValueError(f"unknown allocation {name!r}: choose from {', '.join(['random', 'heuristic', *rules])}")
