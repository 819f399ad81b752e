"""Writing what a simulator returns into shared memory, and holding it to its description.

Shapes and types are checked row by row; values in batches, which is much cheaper.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from alma.simulators.memory import Memory
from alma.task.outcome import Outcome
from alma.task.spec import TaskSpec
from alma.task.view import NOBODY, View

KINDS = {"b": ("b", "True and False"), "i": ("iu", "integers"), "f": ("fiu", "floating-point numbers")}
"""For each kind of shared array: the kinds of NumPy dtypes that fit into it, and what they are called."""


class BreachError(ValueError):
    """A simulator returned something that its description does not allow."""


class Writer:
    """Writes views and outcomes of one worker's seats."""

    def __init__(self, spec: TaskSpec, metrics: Sequence[str], memory: Memory) -> None:
        self.spec, self.memory, self.metrics = spec, memory, frozenset(metrics)
        self._limits = {"subtask": spec.subtasks, "target": spec.entities}
        self._scalars = ("reward", "terminated", "truncated", "success")

    def write_view(self, rows: View, seat: int, view: Any) -> None:
        """Write a view into the rows of a seat."""
        if not isinstance(view, View):
            raise BreachError(f"returned a {type(view).__name__} where an alma.View is expected")
        for name, array in vars(rows).items():
            self._write(f"View.{name}", array[seat], getattr(view, name), self._limits.get(name))

    def write_outcome(self, seat: int, outcome: Any) -> bool:
        """Write an outcome into the rows of a seat; returns whether the episode is over."""
        if not isinstance(outcome, Outcome):
            raise BreachError(f"returned a {type(outcome).__name__} where an alma.Outcome is expected")
        rows = self.memory.outcome
        for name in self._scalars:
            _write_number(f"Outcome.{name}", getattr(rows, name), seat, getattr(outcome, name))
        for name in ("subtask_rewards", "finished"):
            self._write(f"Outcome.{name}", getattr(rows, name)[seat], getattr(outcome, name))
        if outcome.metrics.keys() != self.metrics:
            told, named = (", ".join(sorted(names)) or "none" for names in (outcome.metrics, self.metrics))
            raise BreachError(f"Outcome.metrics has the entries {told}, and `metrics` of the simulator names {named}")
        for name, value in outcome.metrics.items():
            _write_number(f"Outcome.metrics[{name!r}]", rows.metrics[name], seat, value)
        return bool(outcome.terminated or outcome.truncated)

    def _write(self, name: str, row: np.ndarray, value: Any, limit: int | None = None) -> None:
        array = np.asarray(value)
        if array.shape != row.shape:
            raise BreachError(f"{name} has the shape {array.shape}; by the spec ({self._sizes()}) it is {row.shape}")
        accepted, called = KINDS[row.dtype.kind.replace("u", "i")]
        if array.dtype.kind not in accepted:
            raise BreachError(f"{name} has the dtype {array.dtype}, and must hold {called}")
        if limit is not None and array.size and (array.min() < NOBODY or array.max() >= limit):
            raise BreachError(f"{name} must lie between {NOBODY} and {limit - 1}, not {array.min()} and {array.max()}")
        row[...] = array

    def _sizes(self) -> str:
        spec = self.spec
        counts = (spec.agents, "agents"), (spec.entities, "entities"), (spec.subtasks, "subtasks")
        return ", ".join(f"{count} {what}" for count, what in (*counts, (len(spec.actions), "actions")))

    def not_finite(self, seats: Sequence[int], view: View, with_outcome: bool = False) -> list[tuple[int, str]]:
        """Seats whose view or outcome holds a number that is not finite, and which one does."""
        numbers = {f"View.{name}": array for name, array in vars(view).items() if array.dtype.kind == "f"}
        if with_outcome:
            outcome = self.memory.outcome
            numbers |= {"Outcome.reward": outcome.reward, "Outcome.subtask_rewards": outcome.subtask_rewards}
            numbers |= {f"Outcome.metrics[{name!r}]": array for name, array in outcome.metrics.items()}
        found = []
        for name, array in numbers.items():
            finite = np.isfinite(array[seats].reshape(len(seats), -1)).all(axis=1)
            if not finite.all():
                found.append((seats[int(np.argmin(finite))], f"{name} holds a number that is NaN or infinite"))
        return found


def _write_number(name: str, rows: Any, seat: int, value: Any) -> None:
    try:
        rows[seat] = value
    except (TypeError, ValueError) as error:
        raise BreachError(f"{name} must be one number, not {value!r}") from error
