"""Methods as data: the scope of the actors and the kind of allocator. All methods are trained by the same loop.

To train a method of your own, define another `Method` and pass its name as `module:NAME`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
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
from alma.play.team import Team, TeamParams
from alma.task.importing import import_by_name
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import NOBODY
from alma.training.options import TrainingOptions


def learned_allocator(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    """An allocator that learns by amortised Q-learning."""
    return LearnedAllocator(task.spec, options.allocator)


def rule_allocator(kind: str) -> "AllocatorMaker":
    """A maker of allocators that follow a rule: `random`, `heuristic` or `heuristic:NAME`.

    A method whose name begins with the rule's may choose the variant: the method `heuristic:dynamic` uses that rule.
    """

    def make(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
        which = name if name.partition(":")[0] == kind else kind
        return allocator_by_name(task, which)

    return make


def no_allocator(task: Task, options: TrainingOptions, name: str) -> TrainingAllocator:
    """No agent is ever given a subtask."""
    return RuleAllocator(allocate_nobody, allocates=False)


AllocatorMaker: TypeAlias = Callable[[Task, TrainingOptions, str], TrainingAllocator]
"""Makes the allocator of a method: (task, options, full name of the method) -> allocator."""


LearningTeam: TypeAlias = Team[Actors, TrainingAllocator]
"""A team that can be trained."""


@dataclass(frozen=True)
class Method:
    """A method for composite tasks: its actors and its allocator."""

    summary: str
    """A description in one line."""
    scope: Callable[[TaskSpec], Scope]
    """Makes the scope: what actors see under an allocation, and which values they learn."""
    allocator: AllocatorMaker
    actors: type[Actors] = Actors
    """The class of the actors; a subclass can override the loss."""


METHODS = {
    "alma": Method("actors see their own subtask; an allocator learns with them (AQL)", Masked, learned_allocator),
    "alma-no-mask": Method("the same, but actors see everything, labelled with subtasks", Labelled, learned_allocator),
    "heuristic": Method(
        "actors see their own subtask; a rule of the task allocates, or heuristic:NAME",
        Masked,
        rule_allocator("heuristic"),
    ),
    "random": Method("actors see their own subtask; allocations are random", Masked, rule_allocator("random")),
    "flat": Method("no subtasks: actors see everything and share the global reward", Flat, no_allocator),
    "copa": Method(
        "flat actors with a coach, who gives each a strategy at decision points", Flat, no_allocator, CoachedActors
    ),
}


def is_imported(name: str) -> bool:
    """Whether a name stands for a method of the user's own, `module:NAME`, rather than for a built-in one."""
    kind, colon, _ = name.partition(":")
    return kind not in METHODS and bool(colon)


def find_method(name: str) -> Method:
    """A built-in method by its name or as `heuristic:NAME`, or the user's own as `module:NAME`."""
    kind, _, rest = name.partition(":")
    if kind in METHODS:
        if rest and kind != "heuristic":
            raise ValueError(f"the method {kind!r} has no variants: write {kind}, not {name}")
        return METHODS[kind]
    if not is_imported(name):
        raise ValueError(f"unknown method {name!r}: choose from {', '.join(METHODS)}, or name your own as module:NAME")
    found = import_by_name("method", name)
    if not isinstance(found, Method):
        raise ValueError(f"{name!r} must be an alma.Method")
    return found


def make_team(task: Task, options: TrainingOptions, method: str) -> LearningTeam:
    """The actors and the allocator of a method. Raises a ValueError if task, options and method do not fit together."""
    found, period = find_method(method), options.allocator.period
    actors = found.actors(task.spec, options.actors, found.scope(task.spec), period)
    _ = actors.networks  # built now, so that options which do not fit the task raise an error at once
    return Team(actors, found.allocator(task, options, method), options.allocator.play_period or period)


@lru_cache(maxsize=16)
def params_like(team: LearningTeam, task: Task) -> TeamParams:
    """Shapes and dtypes of a team's parameters."""

    def begin(key: PRNGKeyArray) -> TeamParams:
        state = jax.vmap(task.reset)(key[None])
        view = jax.vmap(task.view)(state)
        nobody = jnp.full((1, task.spec.agents), NOBODY, jnp.int32)
        levels = {"actors": team.actors.init(key, view, nobody), "allocator": team.allocator.init(key, view, nobody)}
        return {name: level.params for name, level in levels.items()}

    return jax.eval_shape(begin, jax.random.key(0))
