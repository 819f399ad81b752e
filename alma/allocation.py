"""Allocators: who gives every agent a subtask. All share one interface, so that any can be put on any actors."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from alma.choice import choose_uniformly
from alma.learning.allocators import LearnedAllocator
from alma.learning.search import how_many, search_all, search_nearby
from alma.networks.proposal import allowed_subtasks
from alma.rollout import Allocator, Considered, Situation
from alma.task import NOBODY, Allocation, Task

ALL_AT_MOST = 10_000
"""Up to so many allocations, a search scores them all."""


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
    return choose_uniformly(key, allowed_subtasks(situation.view, len(situation.allocation)))


def nobody(params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
    """No agent is given a subtask, for actors that know of none."""
    return jnp.full_like(situation.allocation, NOBODY)


@dataclass(frozen=True)
class Fixed:
    """Every agent keeps one subtask; while that is not active, the agent has none."""

    subtasks: tuple[int, ...]

    def __call__(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
        chosen, view = jnp.asarray(self.subtasks), situation.view
        works = view.present[: len(self.subtasks)] & view.active[chosen]
        return jnp.where(works, chosen, NOBODY)


def fixed(task: Task, subtasks: str) -> Allocator:
    """An allocation written as a subtask for each agent, `0,0,1`."""
    agents, last = task.spec.agents, task.spec.subtasks - 1
    try:
        numbers = tuple(int(part) for part in subtasks.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != agents or not all(0 <= number <= last for number in numbers):
        raise ValueError(
            f"write fixed: and a subtask from 0 to {last} for each of {agents} agents, as in "
            f"fixed:{','.join(str(a % (last + 1)) for a in range(agents))}, not {subtasks!r}"
        )
    return Fixed(numbers)


@dataclass(frozen=True)
class SearchAllocator:
    """What the critic of a learned allocator finds best of all, not only of what is proposed.

    Scores every allocation where there are not too many, and improves on proposals agent by agent otherwise.
    """

    learned: LearnedAllocator
    all_at_most: int = ALL_AT_MOST

    def __call__(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
        networks, own = self.learned.networks, params["allocator"]
        view, previous = situation.view, jnp.asarray(situation.allocation)
        best = search_all(networks, own, view, previous, self.all_at_most)
        if view.active.shape[-1] ** len(previous) <= self.all_at_most:  # nothing can be more than this
            return best
        good = search_nearby(networks, own, key, view, previous, self.learned.options.proposals)
        return jnp.where(how_many(view, len(previous)) <= self.all_at_most, best, good)

    def weigh(self, params: Any, key: PRNGKeyArray, situation: Situation, taken: Allocation) -> Considered:
        """What was found, and what would have been proposed."""
        return self.learned.weigh(params["allocator"], key, situation, taken)


def allocator_by_name(task: Task, name: str) -> Allocator:
    """`heuristic`, `heuristic:NAME`, `random` or `fixed:0,0,1`."""
    kind, _, which = name.partition(":")
    if kind == "heuristic":
        return heuristic(task, which)
    if kind == "fixed":
        return fixed(task, which)
    if name == "random":
        return uniform
    rules = [f"heuristic:{rule}" for rule in task.heuristics]
    choices = ", ".join(["random", "heuristic", *rules, "fixed:SUBTASKS"])
    raise ValueError(f"unknown allocation {name!r}: choose from {choices}")
