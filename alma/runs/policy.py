"""Trained policies: load, allocate, act, and save to one small file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from alma.allocators.rules import allocator_by_name
from alma.allocators.search import SearchAllocator
from alma.files import brief
from alma.play.scripts import scripted_actors
from alma.play.situation import Situation, Strategy
from alma.play.team import PlayingAllocator, Team, TeamParams
from alma.runs.checkpoint import misfit, named_leaves
from alma.runs.config import RunConfig, from_json, to_json
from alma.runs.pretrained import locate
from alma.runs.weights import read_weights, write_weights
from alma.task import registry
from alma.task.importing import Trust
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import NOBODY, Actions, Allocation, View
from alma.training.methods import LearningTeam, params_like

WEIGHTS = "policy.safetensors"
"""The file name of the weights in a run folder."""


@dataclass(frozen=True)
class Policy:
    """A trained policy: actors and an allocator with their parameters.

    In its methods, `previous` is the allocation in force and `last_action` are the last actions; leave them out at the
    first step.
    """

    config: RunConfig
    params: TeamParams

    def __repr__(self) -> str:
        config = self.config
        return f"Policy({config.method} on {config.task}, preset {config.preset}, seed {config.seed})"

    @cached_property
    def task(self) -> Task:
        """The task it was trained on."""
        return self.config.make_task()

    @cached_property
    def team(self) -> LearningTeam:
        """Its actors and its allocator, which take `params`."""
        return self.config.make_team(self.task)

    def task_with(self, options: Mapping[str, Any] | None = None, name: str | None = None) -> Task:
        """The task it was trained on, with other options or another name. Raises a ValueError if it does not fit it."""
        chosen = {**self.config.task_options, **(options or {})}
        task = replace(self.config, task=name or self.config.task, task_options=chosen).make_task()
        check_fits(self.task.spec, task.spec)
        return task

    def team_with(
        self, actors: "Policy | str | None" = None, allocator: "Policy | str | None" = None, task: Task | None = None
    ) -> tuple[Team, TeamParams]:
        """Its team and parameters, with actors or the allocator replaced if others are given (see `transplant`)."""
        if actors is None and allocator is None:
            return self.team, self.params
        return transplant(self, actors, allocator, task)

    @property
    def period(self) -> int:
        """Maximum number of steps between two allocations when it plays."""
        return self.team.play_period

    def allocate(
        self, view: View, key: PRNGKeyArray, previous: Allocation | None = None, state: Any = None
    ) -> Allocation:
        """A subtask for every agent. Policies trained with a heuristic also need the task state."""
        if state is None and self.team.allocator.needs_state:
            raise ValueError(
                f"this policy was trained with the method {self.config.method!r}, whose rule looks at the state of "
                "the task: write policy.allocate(view, key, previous, state)"
            )
        return _allocate(self.team, self.params, key, self._situation(view, previous, None, state))

    def advise(self, view: View, key: PRNGKeyArray) -> Strategy:
        """The coach's strategy for each agent, to be renewed whenever you allocate; None without a coach."""
        return _advise(self.team, self.params, key, self._situation(view, None, None))

    def act(
        self,
        view: View,
        allocation: Allocation,
        last_action: Actions | None = None,
        strategy: Strategy = None,
        key: PRNGKeyArray | None = None,
    ) -> Actions:
        """The best action of every agent under an allocation, and a strategy for methods with a coach.

        The key only matters for `alma-no-mask`, where it permutes the labels of subtasks.
        """
        situation = self._advised(view, allocation, last_action, strategy)
        return _act(self.team, self.params, jax.random.key(0) if key is None else key, situation)

    def values(
        self,
        view: View,
        allocation: Allocation,
        last_action: Actions | None = None,
        strategy: Strategy = None,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "A U"]:
        """The utility of every action of every agent under an allocation."""
        situation = self._advised(view, allocation, last_action, strategy)
        return _values(self.team, self.params, jax.random.key(0) if key is None else key, situation)

    def _advised(
        self, view: View, allocation: Allocation, last_action: Actions | None, strategy: Strategy
    ) -> Situation:
        if strategy is None and self.team.actors.is_coached:
            raise ValueError(
                f"the actors of {self.config.method!r} follow a coach: write policy.act(view, allocation, actions, "
                "strategy) with strategy = policy.advise(view, key) from the last decision"
            )
        return self._situation(view, allocation, last_action, None, strategy)

    def allocation_values(
        self, view: View, allocations: Int[Array | np.ndarray, "P A"], previous: Allocation | None = None
    ) -> Float[Array, "P"]:
        """The critic's value of each allocation."""
        allocator = self.team.allocator
        if not allocator.has_critic:
            raise ValueError(f"the method {self.config.method!r} has no critic of allocations")
        spec, situation = self.task.spec, self._situation(view, previous, None)
        check_numbers("allocations", jnp.asarray(allocations), spec.agents, spec.subtasks, axes=2)
        return _allocation_values(allocator, self.params["allocator"], situation, jnp.asarray(allocations))

    def save(self, path: str | Path) -> Path:
        """Write weights and configuration to one file, atomically; returns its path."""
        path = Path(path)
        if path.suffix != ".safetensors":
            raise ValueError(f"weights are saved as .safetensors, not as {path.name!r}")
        if not path.parent.is_dir():
            raise ValueError(f"there is no folder {path.parent} to save weights in")
        write_weights(path, {name: np.asarray(leaf) for name, leaf in named_leaves(self.params)}, to_json(self.config))
        return path

    def _situation(
        self,
        view: View,
        allocation: Allocation | None,
        last_action: Actions | None,
        state: Any = None,
        strategy: Strategy = None,
    ) -> Situation:
        spec = self.task.spec
        return Situation(
            state,
            view,
            one_number_each("an allocation", allocation, spec.agents, spec.subtasks),
            one_number_each("last actions", last_action, spec.agents, len(spec.actions)),
            strategy,
        )


def name_of(policy: Policy | str | Path | None) -> str:
    """What to call a policy, actors or an allocator: task, method and seed of a policy, or else the path or name that
    was given; empty if none was."""
    if not isinstance(policy, Policy):
        return str(policy or "")
    config = policy.config
    return f"{config.task}, {config.method}, seed {config.seed}"


def one_number_each(what: str, given: Any, agents: int, below: int) -> Int[Array, "A"]:
    """The given numbers, one per agent, as an array; all `NOBODY` if None. Raises a ValueError if they are invalid."""
    if given is None:
        return jnp.full(agents, NOBODY, jnp.int32)
    numbers = jnp.asarray(given)
    check_numbers(what, numbers, agents, below, axes=1)
    return numbers


def check_numbers(what: str, numbers: Array, agents: int, below: int, axes: int) -> None:
    """Raise a ValueError unless `numbers` has this many axes, the last with one integer in [-1, below) per agent."""
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ValueError(f"{what} must have whole numbers, not {numbers.dtype}")
    if numbers.ndim != axes or numbers.shape[-1] != agents:
        raise ValueError(f"{what} must have one number for each of {agents} agents, not the shape {numbers.shape}")
    if not isinstance(numbers, jax.core.Tracer) and not jnp.all((numbers >= NOBODY) & (numbers < below)):
        raise ValueError(f"{what} must have numbers from {NOBODY} (none) to {below - 1}, not {numbers.tolist()}")


@partial(jax.jit, static_argnums=0)
def _allocate(team: LearningTeam, params: TeamParams, key: PRNGKeyArray, situation: Situation) -> Allocation:
    return team.allocator.greedy(params["allocator"], key, situation)


@partial(jax.jit, static_argnums=0)
def _act(team: LearningTeam, params: TeamParams, key: PRNGKeyArray, situation: Situation) -> Actions:
    return team.actors.greedy(params["actors"], key, situation)


@partial(jax.jit, static_argnums=0)
def _values(team: LearningTeam, params: TeamParams, key: PRNGKeyArray, situation: Situation) -> Float[Array, "A U"]:
    return team.actors.values(params["actors"], key, situation)


@partial(jax.jit, static_argnums=0)
def _advise(team: LearningTeam, params: TeamParams, key: PRNGKeyArray, situation: Situation) -> Strategy:
    return team.actors.advise_best(params["actors"], key, situation)


@partial(jax.jit, static_argnums=0)
def _allocation_values(
    allocator: Any, params: Any, situation: Situation, allocations: Int[Array, "P A"]
) -> Float[Array, "P"]:
    return allocator.values(params, situation, allocations)


def transplant(
    policy: Policy,
    actors: Policy | str | None = None,
    allocator: Policy | str | None = None,
    task: Task | None = None,
) -> tuple[Team, TeamParams]:
    """Combine actors and an allocator that were not trained together.

    Each defaults to that of `policy`. `actors` is another policy, `random`, or the name of a scripted policy of the
    task. `allocator` is another policy, or `search`, `random`, `heuristic[:NAME]` or `fixed:SUBTASKS`. `task` is the
    task that will be played, by default the policy's. Returns the team and its parameters.
    """
    trained = actors if isinstance(actors, Policy) else policy
    source = allocator if isinstance(allocator, Policy) else policy
    for other in (trained, source):
        check_fits(policy.task.spec, other.task.spec)
    team: Team = trained.team
    if isinstance(actors, str):
        team = replace(team, actors=scripted_actors(task or policy.task, actors))
    elif not team.actors.knows_subtasks:
        raise ValueError(f"the actors of {trained.config.method!r} know no subtasks: no allocator can be put on them")
    params = {"actors": trained.params["actors"], "allocator": source.params["allocator"]}
    return replace(team, allocator=_find_allocator(source, allocator, task), play_period=source.period), params


def _find_allocator(source: Policy, allocator: Policy | str | None, task: Task | None) -> PlayingAllocator:
    """The allocator of a policy, a search with its critic, or a rule by name."""
    own: Any = source.team.allocator
    if allocator == "search":
        if not own.has_critic:
            raise ValueError(f"a search needs a critic of allocations; the method {source.config.method!r} has none")
        return SearchAllocator(own)
    if isinstance(allocator, str):
        return allocator_by_name(task or source.task, allocator)
    if not own.allocates:
        raise ValueError(f"the method {source.config.method!r} has no allocator")
    return own


def check_fits(trained: TaskSpec, other: TaskSpec) -> None:
    """Raise a ValueError if networks trained on one task cannot be used on the other."""
    for what in ("name", "actions", "features", "relations"):
        learned, found = getattr(trained, what), getattr(other, what)
        if learned != found:
            raise ValueError(
                f"what was learned does not fit: the tasks differ in {what} ({_difference(learned, found)}); "
                "use the options of the task that it was trained with"
            )


def _difference(learned: str | tuple[str, ...], found: str | tuple[str, ...]) -> str:
    """What two names, or two lists of names, differ in, for an error message."""
    if isinstance(learned, str) or isinstance(found, str):
        return f"{learned!r} in training, {found!r} here"
    only = [f"{name!r} only in training" for name in learned if name not in found]
    only += [f"{name!r} only here" for name in found if name not in learned]
    more = f", and {len(only) - 2} more" if len(only) > 2 else ""
    return ", ".join(only[:2]) + more if only else "the same names in another order"


def fingerprint(weights: Path) -> str:
    """A hash of a file of weights, to tell files apart."""
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:16]


def load(path: str | Path, *, trust: Trust = False, task: str | None = None) -> Policy:
    """Load a policy from a run folder, a file written by `Policy.save`, or `pretrained:NAME`, which comes with alma.

    Weights of a task or method of your own name its module, which is only imported with `trust=True`: do that for files
    of people whom you would let run programs on your machine. Instead, `task` may name a class of your own that is
    taken in place of the one that the file names: the same, or one that is called differently now.
    """
    path = locate(path)
    file = path / WEIGHTS if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"cannot load {path}: {_why_nothing_is_there(path)}")
    data, tensors = read_weights(file)
    if trust is not True and task is not None:
        data, trust = _renamed(data, task), frozenset({task})
    config = from_json(data, trust, file)
    try:
        like = params_like(config.make_team(), config.make_task())
    except ValueError as error:
        raise ValueError(f"cannot load {file}: {brief(error)}") from None
    expected = dict(named_leaves(like))
    if wrong := misfit(expected, tensors):
        raise ValueError(f"{file} does not fit the configuration inside it: {wrong}")
    ruined = [name for name, leaf in tensors.items() if not np.all(np.isfinite(leaf))]
    if ruined:
        raise ValueError(
            f"{file} cannot be played: {len(ruined)} of its arrays hold NaN or infinity, such as {ruined[0]}"
        )
    leaves = [jnp.asarray(tensors[name]) for name in expected]
    return Policy(config, jax.tree.unflatten(jax.tree.structure(like), leaves))


def _renamed(data: Any, task: str) -> Any:
    """The data of a configuration with another name of its task, if that is somebody's own class."""
    if not isinstance(data, dict) or not registry.is_imported(str(data.get("task"))):
        return data
    return {**data, "task": task}


def _why_nothing_is_there(path: Path) -> str:
    if not path.is_dir():
        return "no such file"
    if (path / "result.json").exists():
        return "a finished run without its weights, as published ones are; train it anew to play it"
    return "it is not a run folder, or nothing has been saved in it yet"
