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
        """The static description of the task."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> State:
        """Draw the initial state of an episode: a pytree of arrays, which should be small, since replay stores it."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
        """Advance by one step. Actions of absent agents are ignored."""

    @abc.abstractmethod
    def view(self, state: State) -> View:
        """Everything that networks may see of a state. Replay stores states and recomputes their views."""

    @property
    def is_pure(self) -> bool:
        """Whether `reset` and `step` are pure functions, so that a state can be stepped again; False for simulators."""
        return True

    @property
    def parallel(self) -> int | None:
        """The most episodes that can be played at once; None for any number."""
        return None

    @property
    def faults(self) -> int:
        """How many episodes were cut off in this process because a simulator failed; 0 for pure tasks."""
        return 0

    @property
    def heuristics(self) -> Mapping[str, Callable[[State], Allocation]]:
        """Rules that allocate, by name; the first one is the default heuristic."""
        return {}

    @property
    def policies(self) -> Mapping[str, Callable[[PRNGKeyArray, State, Allocation], Actions]]:
        """Scripted policies of the actors, by name, to watch and calibrate a task without learning."""
        return {}

    def scene(self, state: State) -> Scene | None:
        """What a state looks like, for the viewer; None if the task cannot be drawn. Called with NumPy arrays."""
        return None
