"""Writing what simulators return into shared memory, and holding it to the simulator's description.

Shapes and types are checked one by one; values are checked for all seats together, which is much cheaper.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from alma.simulators.memory import Memory
from alma.task.outcome import Outcome
from alma.task.spec import TaskSpec
from alma.task.view import NOBODY, View

KINDS = {"b": ("b", "True and False"), "i": ("iu", "integers"), "f": ("fiu", "floating-point numbers")}
"""For each kind of shared array: the kinds of NumPy dtypes that fit into it, and what they are called."""


class BreachError(ValueError):
    """A simulator returned something that its description does not allow."""


class Field(NamedTuple):
    """A field of views or outcomes, and where it is written."""

    owner: str
    name: str
    shared: np.ndarray
    """A row for every seat."""
    written: np.ndarray
    """The array that rows are written to: `shared`, or one of wide integers, checked before they are copied there."""
    shape: tuple[int, ...]
    kinds: str
    """The kinds of NumPy dtypes that fit into it."""
    limit: int
    """For integers: what they must stay below."""

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"


class ViewWriter:
    """Writes views into the rows of one of the shared views."""

    def __init__(self, spec: TaskSpec, view: View) -> None:
        self._sizes = _sizes(spec)
        limits = {"subtask": spec.subtasks, "target": spec.entities}
        self._fields = [_field("View", name, rows, limits.get(name, 0)) for name, rows in vars(view).items()]

    def write(self, seat: int, view: Any) -> None:
        if not isinstance(view, View):
            raise BreachError(f"returned a {type(view).__name__} where an alma.View is expected")
        _write(self._fields, seat, view, self._sizes)

    def finish(self, seats: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Check the values of these seats, and copy what is not in place yet; yields seats with wrong values, and what
        is wrong."""
        for field in self._fields:
            if field.limit:
                rows = field.written[seats]
                yield from _where(
                    (rows < NOBODY) | (rows >= field.limit),
                    seats,
                    f"{field} must lie between {NOBODY} and {field.limit - 1}",
                )
                field.shared[seats] = rows
            elif field.kinds == KINDS["f"][0]:
                yield from _not_finite(field.shared, seats, str(field))


class OutcomeWriter:
    """Writes outcomes into the shared ones."""

    def __init__(self, spec: TaskSpec, memory: Memory) -> None:
        self._sizes, self._rows = _sizes(spec), memory.outcome
        arrays = {name: rows for name, rows in vars(memory.outcome).items() if name != "metrics"}
        self._scalars = {name: rows for name, rows in arrays.items() if rows.ndim == 1}
        self._fields = [_field("Outcome", name, rows) for name, rows in arrays.items() if rows.ndim > 1]

    def write(self, seat: int, outcome: Any) -> bool:
        """Write an outcome; returns whether the episode is over."""
        if not isinstance(outcome, Outcome):
            raise BreachError(f"returned a {type(outcome).__name__} where an alma.Outcome is expected")
        _write(self._fields, seat, outcome, self._sizes)
        for name, rows in self._scalars.items():
            _write_number(f"Outcome.{name}", rows, seat, getattr(outcome, name))
        metrics = self._rows.metrics
        if outcome.metrics.keys() != metrics.keys():
            told, named = (", ".join(sorted(names)) or "nothing" for names in (outcome.metrics, metrics))
            raise BreachError(f"Outcome.metrics tells {told}, and `metrics` of the simulator names {named}")
        for name, value in outcome.metrics.items():
            _write_number(f"Outcome.metrics[{name!r}]", metrics[name], seat, value)
        return bool(outcome.terminated or outcome.truncated)

    def finish(self, seats: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yields seats of these with wrong values, and what is wrong."""
        yield from _not_finite(self._rows.reward, seats, "Outcome.reward")
        yield from _not_finite(self._rows.subtask_rewards, seats, "Outcome.subtask_rewards")
        for name, rows in self._rows.metrics.items():
            yield from _not_finite(rows, seats, f"Outcome.metrics[{name!r}]")


def _field(owner: str, name: str, rows: np.ndarray, limit: int = 0) -> Field:
    written = np.zeros(rows.shape, np.int64) if limit else rows
    return Field(owner, name, rows, written, rows.shape[1:], KINDS[rows.dtype.kind][0], limit)


def _write(fields: Sequence[Field], seat: int, told: Any, sizes: str) -> None:
    for field in fields:
        array = np.asarray(getattr(told, field.name))
        if array.shape != field.shape:
            raise BreachError(f"{field} has the shape {array.shape}; by the spec ({sizes}) it is {field.shape}")
        if array.dtype.kind not in field.kinds:
            called = next(called for kinds, called in KINDS.values() if kinds == field.kinds)
            raise BreachError(f"{field} has the dtype {array.dtype}, and must hold {called}")
        field.written[seat] = array


def _write_number(name: str, rows: Any, seat: int, value: Any) -> None:
    try:
        rows[seat] = value
    except (TypeError, ValueError) as error:
        raise BreachError(f"{name} must be one number, not {value!r}") from error


def _not_finite(rows: Any, seats: Sequence[int], name: str) -> Iterator[tuple[int, str]]:
    finite = np.isfinite(rows[seats])
    if not finite.all():
        yield from _where(~finite, seats, f"{name} holds a number that is NaN or infinite")


def _where(wrong: np.ndarray, seats: Sequence[int], text: str) -> Iterator[tuple[int, str]]:
    """The first seat with something wrong, and what that is."""
    if wrong.any():
        yield seats[int(np.argmax(wrong.reshape(len(seats), -1).any(axis=1)))], text


def _sizes(spec: TaskSpec) -> str:
    counts = (spec.agents, "agents"), (spec.entities, "entities"), (spec.subtasks, "subtasks")
    return ", ".join(f"{count} {what}" for count, what in (*counts, (len(spec.actions), "actions")))
