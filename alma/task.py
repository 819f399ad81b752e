"""The contract between tasks and learners: everything a learner may know of an environment.

A *composite task* is a job made of several subtasks that run at once. A task is a handful of pure
functions over a small state; a learner sees the state only through a `View`. Sizes are static, counts
vary by masks, and masks are positive (True means yes). Shapes are written with these letters:

    A agents    E entities (the agents first, then the rest)    M subtasks    U actions
    F features of an entity    R relations between an agent and an entity

`alma.check_task` holds a task to all of this.
"""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.scene import Scene

NOBODY = -1
"""The subtask of an agent that is allocated nowhere, and of an entity that belongs to none."""

Allocation: TypeAlias = Int[Array | np.ndarray, "A"]
"""The subtask of every agent; `NOBODY` for absent agents and agents without a subtask."""

Actions: TypeAlias = Int[Array, "A"]


@dataclass(frozen=True)
class TaskSpec:
    """The static facts of a task: sizes, and what the numbers mean."""

    name: str
    agents: int
    entities: int
    subtasks: int
    actions: tuple[str, ...]
    """Names of the actions; their number is U."""
    features: tuple[str, ...]
    """Names of the entity features; their number is F."""
    relations: tuple[str, ...]
    """Names of the agent-entity relations; their number is R."""
    max_steps: int
    mask_subtask_actions: bool
    """Whether actions aimed at an entity of another subtask are unavailable to an agent."""
    max_things: int | None = None
    """The most non-agent entities that one subtask can have, so that networks look no further; None: all."""
    places: tuple[str, ...] = ()
    """Features that tell where on the map an entity is. Relations tell where it is from an agent, which generalises
    better, so that networks can do without."""

    @property
    def things_per_subtask(self) -> int:
        things = self.entities - self.agents
        return things if self.max_things is None else min(self.max_things, things)

    def features_seen(self, places: bool) -> tuple[int, ...]:
        """The indices of the features that a network looks at, with or without places."""
        return tuple(i for i, name in enumerate(self.features) if places or name not in self.places)

    def __post_init__(self) -> None:
        for name in ("agents", "entities", "subtasks", "max_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"TaskSpec.{name} must be at least 1, not {getattr(self, name)}")
        if self.entities < self.agents:
            raise ValueError(
                f"TaskSpec.entities ({self.entities}) counts the agents ({self.agents}) too: it cannot be smaller"
            )
        if not self.actions or not self.features:
            raise ValueError("TaskSpec.actions and TaskSpec.features must name at least one each")
        unknown = [name for name in self.places if name not in self.features]
        if unknown:
            raise ValueError(f"TaskSpec.places must be names of features; {', '.join(unknown)} are none")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class View:
    """What there is to see in a state; the only thing networks are given."""

    entities: Float[Array, "E F"]
    """Features; zeros where absent."""
    present: Bool[Array, "E"]
    """False for padding and for the dead: masked everywhere."""
    visible: Bool[Array, "A E"]
    """Which entities an agent may observe."""
    subtask: Int[Array, "E"]
    """The subtask a non-agent entity belongs to; `NOBODY` for agents (the allocation says) and the absent."""
    active: Bool[Array, "M"]
    """Subtasks that are present and not yet finished."""
    available: Bool[Array, "A U"]
    """Available actions; all False for absent agents."""
    target: Int[Array, "A U"]
    """The entity an available action is aimed at, -1 where there is none."""
    relations: Float[Array, "A E R"]
    """What an entity is to an agent (offset, distance, in reach, ...); zeros where either is absent."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """What one step brought."""

    reward: Float[Array, ""]
    """The global reward."""
    subtask_rewards: Float[Array, "M"]
    """Zero for subtasks that were not active before the step."""
    terminated: Bool[Array, ""]
    """The episode is really over: there is no value beyond."""
    truncated: Bool[Array, ""]
    """The episode was only cut off by a time limit: bootstrap through it. Never together with `terminated`."""
    finished: Bool[Array, "M"]
    """Subtasks that are finished by now, well or badly; once finished, always finished."""
    success: Bool[Array, ""]
    """The episode ended in success with this step."""
    metrics: Mapping[str, Float[Array, ""]]
    """Figures worth logging; each adds up over an episode."""

    @property
    def done(self) -> Bool[Array, "*batch"]:
        return self.terminated | self.truncated


State = TypeVar("State")


@dataclass(frozen=True)
class Task(abc.ABC, Generic[State]):
    """A composite task. Subclass it, implement the four abstract members, then `alma.check_task` it."""

    @property
    @abc.abstractmethod
    def spec(self) -> TaskSpec:
        """The static facts of the task."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> State:
        """Draw the initial state of an episode. A state is a pytree of arrays, small: replay stores it."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
        """Advance by one step. Actions of absent agents are ignored."""

    @abc.abstractmethod
    def view(self, state: State) -> View:
        """Rebuild everything a learner may see from a state."""

    @property
    def heuristics(self) -> Mapping[str, Callable[[State], Allocation]]:
        """Allocations by rule; the first one is the default heuristic."""
        return {}

    @property
    def policies(self) -> Mapping[str, Callable[[PRNGKeyArray, State, Allocation], Actions]]:
        """Scripted actors, so that a task can be watched and calibrated without learning."""
        return {}

    def scene(self, state: State) -> Scene | None:
        """What a state looks like; None where a task does not say. Called outside of JAX, with NumPy arrays."""
        return None


def subtask_of_entities(view: View, allocation: Int[Array | np.ndarray, "*b A"]) -> Int[Array, "*b E"]:
    """The subtask of every entity, the agents' taken from the allocation. Leading axes are batches."""
    rest = view.subtask[..., allocation.shape[-1] :].astype(allocation.dtype)
    return jnp.concatenate([allocation, rest], axis=-1)


def available_under(view: View, allocation: Int[Array | np.ndarray, "*b A"]) -> Bool[Array, "*b A U"]:
    """Available actions when those aimed at an entity of another subtask are ruled out.

    For tasks whose spec says `mask_subtask_actions`; actions without a target always stay.
    """
    subtask = subtask_of_entities(view, allocation)[..., None, :]
    target_subtask = jnp.take_along_axis(subtask, view.target, axis=-1)
    aimed_elsewhere = (view.target >= 0) & (target_subtask != allocation[..., None])
    return view.available & ~aimed_elsewhere


def team_size(view: View, agents: int) -> Int[Array, ""]:
    """How many agents are present."""
    return jnp.sum(view.present[:agents])
