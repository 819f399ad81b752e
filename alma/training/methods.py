"""Methods as data: what actors make of an allocation, and who allocates. All are trained by the same loop.

A method of your own is one more `Method`, named as `module:NAME` where a method is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from alma.actors.actors import Actors
from alma.actors.copa import CoachedActors
from alma.actors.scope import Flat, Labelled, Masked, Scope
from alma.allocators.allocator import TrainingAllocator
from alma.allocators.learned import LearnedAllocator
from alma.allocators.rules import RuleAllocator, allocator_by_name, nobody
from alma.task.importing import import_by_name
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.training.options import TrainingOptions


def learned(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    """Amortised Q-learning."""
    return LearnedAllocator(task.spec, options.allocator)


def rule(kind: str) -> "AllocatorMaker":
    """A rule: `random`, `heuristic` or `heuristic:NAME`. Methods named after their rule choose it by their name."""

    def make(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
        which = name if name.partition(":")[0] == kind else kind
        return RuleAllocator(allocator_by_name(task, which), options.allocator, needs_state=which != "random")

    return make


def none(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    """Nobody is allocated."""
    return RuleAllocator(nobody, options.allocator, allocates=False)


AllocatorMaker: TypeAlias = Callable[[Task, TrainingOptions, str], TrainingAllocator]
"""Makes the high level of a method, given its whole name."""


@dataclass(frozen=True)
class Method:
    """One way to train on a composite task."""

    summary: str
    scope: Callable[[TaskSpec], Scope]
    """What actors see under an allocation, and which values they learn."""
    allocator: AllocatorMaker
    actors: type[Actors] = Actors
    """Makes the low level; a subclass can have a loss of its own."""


METHODS = {
    "alma": Method("actors see their own subtask; an allocator learns with them (AQL)", Masked, learned),
    "alma-no-mask": Method("the same, but actors see everything, labelled with subtasks", Labelled, learned),
    "heuristic": Method("masked actors under a rule of the task, or heuristic:NAME", Masked, rule("heuristic")),
    "random": Method("masked actors under random allocations", Masked, rule("random")),
    "flat": Method("no subtasks: actors see everything and share the global reward", Flat, none),
    "copa": Method("flat actors with a coach, who gives each a strategy at decision points", Flat, none, CoachedActors),
}


def find_method(name: str) -> Method:
    """A method by name, with `:NAME` after it where there is a choice; or one of your own as `module:NAME`."""
    kind, _, rest = name.partition(":")
    if kind in METHODS:
        if rest and kind != "heuristic":
            raise ValueError(f"the method {kind!r} has no variants: write {kind}, not {name}")
        return METHODS[kind]
    if not rest:
        raise ValueError(f"unknown method {name!r}: choose from {', '.join(METHODS)}, or name your own as module:NAME")
    found = import_by_name("method", name)
    if not isinstance(found, Method):
        raise ValueError(f"{name!r} must be an alma.methods.Method")
    return found


def make_actors(task: Task, options: TrainingOptions, method: str) -> Actors:
    """The low level of a method."""
    found = find_method(method)
    return found.actors(task.spec, options.actors, found.scope(task.spec), options.allocator.period)


def make_allocator(task: Task, options: TrainingOptions, method: str) -> TrainingAllocator:
    """The high level of a method."""
    return find_method(method).allocator(task, options, method)
