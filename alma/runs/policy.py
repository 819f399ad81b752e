"""What a run has learned, ready to be used: load it, let it allocate and act, save it as one small file."""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from safetensors import SafetensorError, safe_open
from safetensors.flax import save as to_bytes

from alma.actors.copa import CoachedActors
from alma.actors.networks import Strategy
from alma.allocators.learned import LearnedAllocator
from alma.allocators.rules import RuleAllocator, allocator_by_name
from alma.allocators.search import SearchAllocator
from alma.play.scripts import policy_by_name
from alma.play.situation import Allocator, Situation, Weigh, no_coach, no_critic, no_ratings
from alma.play.team import Players
from alma.runs.checkpoint import named_leaves, written_at_once
from alma.runs.config import RunConfig, from_json, to_json
from alma.runs.pretrained import locate
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import NOBODY, Actions, Allocation, View
from alma.training.trainer import Trainer

WEIGHTS = "policy.safetensors"
"""The name of the weights in a run folder."""

_CONFIG = "alma_config"


@dataclass(frozen=True)
class LearnedPolicy:
    """An allocator and actors with what they have learned.

    `previous` and `last_action` are the allocation in force and the last actions; leave them out at the first step.
    """

    config: RunConfig
    params: Any

    @cached_property
    def trainer(self) -> Trainer:
        return self.config.make_trainer()

    @property
    def task(self) -> Task:
        """The task it was trained on."""
        return self.trainer.task

    @property
    def players(self) -> Players:
        """For `alma.evaluation`."""
        return self.trainer.players_with(self.params)

    @property
    def period(self) -> int:
        """Steps between allocations."""
        return self.players.period

    def allocate(
        self, view: View, key: PRNGKeyArray, previous: Allocation | None = None, state: Any = None
    ) -> Allocation:
        """A subtask for every agent. Policies trained under a rule need the task's state for it."""
        allocator = self.trainer.allocator
        if state is None and isinstance(allocator, RuleAllocator) and allocator.needs_state:
            raise ValueError(
                f"this policy was trained with the method {self.config.method!r}, whose rule looks at the state of "
                "the task: write policy.allocate(view, key, previous, state)"
            )
        return _allocate(self.trainer, self.params, key, self._situation(view, previous, None, state))

    def advise(self, view: View, key: PRNGKeyArray) -> Strategy:
        """A strategy for every agent, of methods with a coach; renew it whenever you allocate. Others: None."""
        return _advise(self.trainer, self.params, key, self._situation(view, None, None))

    def act(
        self,
        view: View,
        allocation: Allocation,
        last_action: Actions | None = None,
        strategy: Strategy = None,
        key: PRNGKeyArray | None = None,
    ) -> Actions:
        """The best action of every agent under an allocation, and under a strategy where there is a coach.

        The key only matters to `alma-no-mask`, whose labels are permuted by it.
        """
        situation = self._advised(view, allocation, last_action, strategy)
        return _act(self.trainer, self.params, jax.random.key(0) if key is None else key, situation)

    def values(
        self,
        view: View,
        allocation: Allocation,
        last_action: Actions | None = None,
        strategy: Strategy = None,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "A U"]:
        """The utility of every action to every agent under an allocation."""
        situation = self._advised(view, allocation, last_action, strategy)
        return _values(self.trainer, self.params, jax.random.key(0) if key is None else key, situation)

    def _advised(
        self, view: View, allocation: Allocation, last_action: Actions | None, strategy: Strategy
    ) -> Situation:
        if strategy is None and isinstance(self.trainer.actors, CoachedActors):
            raise ValueError(
                f"the actors of {self.config.method!r} follow a coach: write policy.act(view, allocation, actions, "
                "strategy) with strategy = policy.advise(view, key) from the last decision"
            )
        return self._situation(view, allocation, last_action, None, strategy)

    def allocation_values(
        self, view: View, allocations: Int[Array | np.ndarray, "P A"], previous: Allocation | None = None
    ) -> Float[Array, "P"]:
        """What the critic thinks of each of several allocations."""
        allocator = self.trainer.allocator
        if not isinstance(allocator, LearnedAllocator):
            raise ValueError(f"the method {self.config.method!r} has no critic of allocations")
        spec, situation = self.task.spec, self._situation(view, previous, None)
        check_numbers("allocations", jnp.asarray(allocations), spec.agents, spec.subtasks, axes=2)
        return _allocation_values(allocator, self.params["allocator"], situation, jnp.asarray(allocations))

    def save(self, path: str | Path) -> Path:
        """Write weights and configuration to one file, at once."""
        path = Path(path)
        if path.suffix != ".safetensors":
            raise ValueError(f"weights are saved as .safetensors, not as {path.name!r}")
        if not path.parent.is_dir():
            raise ValueError(f"there is no folder {path.parent} to save weights in")
        tensors = {name: jnp.asarray(leaf) for name, leaf in named_leaves(self.params)}
        with written_at_once(path) as unfinished:
            unfinished.write_bytes(to_bytes(tensors, {_CONFIG: json.dumps(to_json(self.config))}))
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


def one_number_each(what: str, given: Any, agents: int, below: int) -> Int[Array, "A"]:
    """One number for every agent, none if nothing is given; complains about what cannot be meant."""
    if given is None:
        return jnp.full(agents, NOBODY, jnp.int32)
    numbers = jnp.asarray(given)
    check_numbers(what, numbers, agents, below, axes=1)
    return numbers


def check_numbers(what: str, numbers: Array, agents: int, below: int, axes: int) -> None:
    """Complain about what is not one number for every agent, along the last of so many axes."""
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ValueError(f"{what} must have whole numbers, not {numbers.dtype}")
    if numbers.ndim != axes or numbers.shape[-1] != agents:
        raise ValueError(f"{what} must have one number for each of {agents} agents, not the shape {numbers.shape}")
    if not isinstance(numbers, jax.core.Tracer) and not jnp.all((numbers >= NOBODY) & (numbers < below)):
        raise ValueError(f"{what} must have numbers from {NOBODY} (none) to {below - 1}, not {numbers.tolist()}")


@partial(jax.jit, static_argnums=0)
def _allocate(trainer: Trainer, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
    return trainer.allocator.greedy(params["allocator"], key, situation)


@partial(jax.jit, static_argnums=0)
def _act(trainer: Trainer, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
    return trainer.actors.greedy(params["actors"], key, situation)


@partial(jax.jit, static_argnums=0)
def _values(trainer: Trainer, params: Any, key: PRNGKeyArray, situation: Situation) -> Float[Array, "A U"]:
    return trainer.actors.values(params["actors"], key, situation)


@partial(jax.jit, static_argnums=0)
def _advise(trainer: Trainer, params: Any, key: PRNGKeyArray, situation: Situation) -> Strategy:
    return trainer.actors.networks.advise_best(params["actors"], key, situation.view)


@partial(jax.jit, static_argnums=0)
def _allocation_values(
    allocator: LearnedAllocator, params: Any, situation: Situation, allocations: Int[Array, "P A"]
) -> Float[Array, "P"]:
    encoded = allocator.networks.encode(params, situation.view, jnp.asarray(situation.allocation))
    return allocator.networks.values(params, encoded, allocations)


def transplant(
    policy: LearnedPolicy,
    actors: LearnedPolicy | str | None = None,
    allocator: LearnedPolicy | str | None = None,
    task: Task | None = None,
) -> Players:
    """Put parts of other runs, or a rule, in the place of a policy's own: what was never trained together plays.

    `actors` is another policy, `random`, or the name of a script of the task. `allocator` is another policy, or
    `search`, `random`, `heuristic[:NAME]` or `fixed:SUBTASKS`. `task` is what will be played, if not the task of the
    policy.
    """
    trained = actors if isinstance(actors, LearnedPolicy) else policy
    source = allocator if isinstance(allocator, LearnedPolicy) else policy
    for other in (trained, source):
        check_fits(policy.task.spec, other.task.spec)
    players = trained.players
    if isinstance(actors, str):
        script = policy_by_name(task or policy.task, actors)
        players = replace(players, policy=script, coach=no_coach, rate=no_ratings)
    elif not trained.trainer.actors.scope.knows_subtasks:
        raise ValueError(f"the actors of {trained.config.method!r} know no subtasks: no allocator can be put on them")
    if allocator == "search":
        critic = policy.trainer.allocator
        if not isinstance(critic, LearnedAllocator):
            raise ValueError(f"a search needs a critic of allocations; the method {policy.config.method!r} has none")
        search = SearchAllocator(critic)
        rule: Allocator = search
        weigh: Weigh = search.weigh
    elif isinstance(allocator, str):
        rule, weigh = allocator_by_name(task or policy.task, allocator), no_critic
    else:
        if not source.trainer.allocator.allocates:
            raise ValueError(f"the method {source.config.method!r} has no allocator")
        rule, weigh = source.players.allocator, source.players.weigh
    params = {"actors": trained.params["actors"], "allocator": source.params["allocator"]}
    return replace(players, allocator=rule, weigh=weigh, period=source.period, params=params)


def check_fits(trained: TaskSpec, other: TaskSpec) -> None:
    """Complain about a task that networks of another do not fit."""
    for what in ("name", "actions", "features", "relations"):
        if getattr(trained, what) != getattr(other, what):
            raise ValueError(f"what was learned does not fit: the tasks have different {what}")


def fingerprint(weights: Path) -> str:
    """Tells weights apart."""
    return hashlib.sha256(weights.read_bytes()).hexdigest()[:16]


def load(path: str | Path) -> LearnedPolicy:
    """Load what was learned: a run folder, a file that `save` wrote, or `pretrained:NAME`, which comes with alma."""
    path = locate(path)
    file = path / WEIGHTS if path.is_dir() else path
    if not file.exists():
        raise ValueError(f"cannot load {path}: {_why_nothing_is_there(path)}")
    try:
        with safe_open(str(file), framework="flax") as archive:
            described = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ValueError(f"cannot load {file}: {error}") from None
    if _CONFIG not in described:
        raise ValueError(f"{file} was not written by alma: it has no configuration inside")
    config = from_json(json.loads(described[_CONFIG]))
    like = config.make_trainer().params_like()
    expected = {name: (leaf.shape, leaf.dtype) for name, leaf in named_leaves(like)}
    if expected != {name: (leaf.shape, leaf.dtype) for name, leaf in tensors.items()}:
        raise ValueError(f"{file} does not fit its own configuration: it was written by another version of alma")
    return LearnedPolicy(config, jax.tree.unflatten(jax.tree.structure(like), [tensors[name] for name in expected]))


def _why_nothing_is_there(path: Path) -> str:
    if not path.is_dir():
        return "no such file"
    if (path / "result.json").exists():
        return "a finished run without its weights, as published ones are; train it anew to play it"
    return "no run folder, or nothing saved in it yet"
