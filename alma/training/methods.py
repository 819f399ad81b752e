"""Methods as data: what actors make of an allocation, and who allocates. All are trained by the same loop.

A method of your own is one more `Method`, named as `module:NAME` where a method is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from alma.actors.actors import Actors
from alma.actors.copa import CoachedActors
from alma.actors.scope import Flat, Labelled, Masked, Scope
from alma.allocators.allocator import TrainingAllocator
from alma.allocators.learned import LearnedAllocator
from alma.allocators.rules import RuleAllocator, allocate_nobody, allocator_by_name
from alma.play.team import Params, Team
from alma.task.importing import import_by_name
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import NOBODY
from alma.training.options import TrainingOptions


def learned_allocator(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    """Amortised Q-learning."""
    return LearnedAllocator(task.spec, options.allocator)


def rule_allocator(kind: str) -> "AllocatorMaker":
    """A rule: `random`, `heuristic` or `heuristic:NAME`. Methods named after their rule choose it by their name."""

    def make(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
        which = name if name.partition(":")[0] == kind else kind
        return allocator_by_name(task, which)

    return make


def no_allocator(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    """Nobody is allocated."""
    return RuleAllocator(allocate_nobody, allocates=False)


AllocatorMaker: TypeAlias = Callable[[Task, TrainingOptions, str], TrainingAllocator]
"""Makes the high level of a method, given its whole name."""


LearningTeam: TypeAlias = Team[Actors, TrainingAllocator]
"""A team that can be trained."""


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
    "alma": Method("actors see their own subtask; an allocator learns with them (AQL)", Masked, learned_allocator),
    "alma-no-mask": Method("the same, but actors see everything, labelled with subtasks", Labelled, learned_allocator),
    "heuristic": Method(
        "masked actors under a rule of the task, or heuristic:NAME", Masked, rule_allocator("heuristic")
    ),
    "random": Method("masked actors under random allocations", Masked, rule_allocator("random")),
    "flat": Method("no subtasks: actors see everything and share the global reward", Flat, no_allocator),
    "copa": Method(
        "flat actors with a coach, who gives each a strategy at decision points", Flat, no_allocator, CoachedActors
    ),
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
        raise ValueError(f"{name!r} must be an alma.Method")
    return found


def make_team(task: Task, options: TrainingOptions, method: str) -> LearningTeam:
    """The actors and the allocator of a method, on a task, with options; complains about what does not fit together."""
    found, period = find_method(method), options.allocator.period
    actors = found.actors(task.spec, options.actors, found.scope(task.spec), period)
    _ = actors.networks  # made now, so that options which do not fit the task are told at once
    return Team(actors, found.allocator(task, options, method), options.allocator.play_period or period)


def params_like(team: LearningTeam, task: Task) -> Params:
    """Shapes and dtypes of what a team learns."""

    def begin(key: PRNGKeyArray) -> Params:
        state = jax.vmap(task.reset)(key[None])
        view = jax.vmap(task.view)(state)
        nobody = jnp.full((1, task.spec.agents), NOBODY, jnp.int32)
        levels = {"actors": team.actors.init(key, view, nobody), "allocator": team.allocator.init(key, view, nobody)}
        return {name: level.params for name, level in levels.items()}

    return jax.eval_shape(begin, jax.random.key(0))
