"""The base class of composite tasks."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxtyping import PRNGKeyArray

from alma.task.outcome import Outcome
from alma.task.scene import Scene
from alma.task.spec import TaskSpec
from alma.task.view import Actions, Allocation, View

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
