"""Methods as data: who allocates. Every method is trained by the same loop."""

from collections.abc import Callable
from dataclasses import dataclass

from alma.allocation import allocator_by_name
from alma.learning.allocators import LearnedAllocator, RuleAllocator, TrainingAllocator
from alma.presets import TrainingOptions
from alma.task import Task


@dataclass(frozen=True)
class Method:
    """One way to train on a composite task."""

    summary: str
    allocator: Callable[[Task, TrainingOptions, str], TrainingAllocator]
    """Makes the high level of the method, given its whole name."""


def _learned(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    return LearnedAllocator(task.spec, options.allocator)


def _rule(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    return RuleAllocator(allocator_by_name(task, name), options.allocator)


METHODS = {
    "alma": Method("actors and allocator learn together", _learned),
    "heuristic": Method("actors learn under a rule of the task; heuristic:NAME chooses which", _rule),
    "random": Method("actors learn under random allocations", _rule),
}


def make_allocator(task: Task, options: TrainingOptions, method: str) -> TrainingAllocator:
    """The high level of a method, named as in `METHODS`, with `:NAME` after it where there is a choice."""
    found = METHODS.get(method.partition(":")[0])
    if found is None:
        raise ValueError(f"unknown method {method!r}: choose from {', '.join(METHODS)}")
    return found.allocator(task, options, method)
