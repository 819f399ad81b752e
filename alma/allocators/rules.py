"""Allocators that follow a rule: heuristics of the task, random and fixed allocations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from alma.allocators.allocator import AllocationExploration
from alma.allocators.proposal import allowed_subtasks
from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics
from alma.nn.params import Params
from alma.play.situation import Situation
from alma.task.choice import choose_uniformly
from alma.task.task import Task
from alma.task.view import NOBODY, Allocation, View

Rule: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Allocation]
"""A rule that allocates: (parameters, key, situation) -> allocation. Rules that were not learned ignore the parameters.
"""


@dataclass(frozen=True)
class Heuristic:
    """One of the task's heuristics, by name."""

    task: Task
    name: str

    def __call__(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
        return self.task.heuristics[self.name](situation.state)


def heuristic(task: Task, name: str = "") -> Heuristic:
    """The task's heuristic of this name; its first one by default."""
    if not task.heuristics:
        raise ValueError(f"the task {task.spec.name!r} has no heuristic allocation: use another allocator")
    if name and name not in task.heuristics:
        raise ValueError(
            f"the task {task.spec.name!r} has no heuristic {name!r}: choose from {', '.join(task.heuristics)}"
        )
    return Heuristic(task, name or next(iter(task.heuristics)))


def uniform(params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
    """Every present agent takes a uniformly random active subtask."""
    return choose_uniformly(key, allowed_subtasks(situation.view, len(situation.allocation)))


def allocate_nobody(params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
    """No agent is given a subtask, for flat actors."""
    return jnp.full_like(situation.allocation, NOBODY)


@dataclass(frozen=True)
class Fixed:
    """Every agent keeps one subtask; while it is not active, the agent has none."""

    subtasks: tuple[int, ...]

    def __call__(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
        chosen, view = jnp.asarray(self.subtasks), situation.view
        works = view.present[: len(self.subtasks)] & view.active[chosen]
        return jnp.where(works, chosen, NOBODY)


def fixed(task: Task, subtasks: str) -> Fixed:
    """A fixed allocation, written as one subtask per agent: `0,0,1`."""
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


def allocator_by_name(task: Task, name: str) -> "RuleAllocator":
    """The rule named `heuristic`, `heuristic:NAME`, `random` or `fixed:0,0,1`."""
    kind, _, which = name.partition(":")
    if kind == "heuristic":
        return RuleAllocator(heuristic(task, which), needs_state=True)
    if kind == "fixed":
        return RuleAllocator(fixed(task, which))
    if name == "random":
        return RuleAllocator(uniform)
    rules = [f"heuristic:{rule}" for rule in task.heuristics]
    choices = ", ".join(["random", "heuristic", *rules, "fixed:SUBTASKS"])
    raise ValueError(f"unknown allocator {name!r}: choose from {choices}")


@dataclass(frozen=True)
class RuleAllocator:
    """An allocator that follows a rule and does not learn."""

    rule: Rule
    allocates: bool = True
    """False if no agent is ever given a subtask."""
    needs_state: bool = False
    """Whether the rule reads the task state; networks only read the view."""

    learns: ClassVar[bool] = False
    has_critic: ClassVar[bool] = False

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> LearnerState:
        return LearnerState({}, {}, optimiser=(), copied=jnp.int32(0))  # nothing to learn

    def allocate(
        self,
        params: Params,
        key: PRNGKeyArray,
        situations: Situation,
        due: Bool[Array, "N"],
        exploration: AllocationExploration,
    ) -> Int[Array, "N A"]:
        keys = jax.random.split(key, due.shape[0])
        fresh = jax.vmap(partial(self.greedy, params))(keys, situations)
        return jnp.where(due[:, None], fresh, situations.allocation)

    def greedy(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Allocation:
        return self.rule(params, key, situation)

    def explain_allocation(self, params: Params, key: PRNGKeyArray, situation: Situation, taken: Allocation) -> None:
        """None: a rule has no candidates."""

    def update(
        self,
        learner: LearnerState,
        key: PRNGKeyArray,
        decisions: replay.Decisions | None,
        view_of: Callable[[Any], View],
        clock: Clock,
    ) -> tuple[LearnerState, Metrics]:
        return learner, {}
