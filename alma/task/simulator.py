"""Simulators in plain Python: the contract for what cannot be, or need not be, a pure function in JAX."""

import abc
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Int, PRNGKeyArray

from alma.task.outcome import Outcome
from alma.task.scene import Scene
from alma.task.spec import TaskSpec
from alma.task.view import Actions, Allocation, View


class SimulatorError(ValueError):
    """A simulator does not fit its description, or fails again and again.

    The message names the simulator, the worker, the step and the seed of the episode, and says what was wrong.
    """


class Simulator(abc.ABC):
    """One copy of a simulator, which plays one episode after another. Write it in plain Python and NumPy.

    `alma.HostTask` makes a task of it, with many copies in worker processes. A simulator that is a dataclass has its
    fields as the task's options. Its constructor must be cheap, since the description of the task is asked of a copy
    that never plays: start what is expensive, such as a game, in the first `reset`. Draw all random numbers from a
    generator seeded in `reset`, and the same seed gives the same episode.
    """

    @property
    @abc.abstractmethod
    def spec(self) -> TaskSpec:
        """The static description of the task; a class attribute will do."""

    metrics: tuple[str, ...] = ()
    """The names of all entries of `Outcome.metrics`."""

    @abc.abstractmethod
    def reset(self, seed: int) -> View:
        """Begin an episode, and return what can be seen of it: a `View` of NumPy arrays, without a batch axis."""

    @abc.abstractmethod
    def step(self, actions: Int[np.ndarray, "A"]) -> tuple[View, Outcome]:
        """Take an action of every agent (those of absent agents are ignored); return what can be seen now, and the
        outcome: an `Outcome` of NumPy arrays, numbers and bools. No further step follows one that ends the episode."""

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Give back what the simulator has taken, such as a game that it has started."""

    @property
    def rules(self) -> Mapping[str, Callable[[View], Allocation]]:
        """Rules that allocate, by name, as functions of a view that JAX can trace; the first one is the default."""
        return {}

    @property
    def scripts(self) -> Mapping[str, Callable[[PRNGKeyArray, View, Allocation], Actions]]:
        """Scripted policies of the actors, by name, as functions of a view that JAX can trace."""
        return {}

    def scene(self, view: View) -> Scene | None:
        """What a view looks like, for the viewer; None if the simulator cannot be drawn. A copy that never plays is
        asked: all that a scene shows must be in the view."""
        return None
