"""The memory that the main process shares with its workers: actions, views and outcomes, a row for every seat."""

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np

from alma.task.outcome import Outcome
from alma.task.spec import TaskSpec
from alma.task.view import View

Shape: TypeAlias = jax.ShapeDtypeStruct


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """The shared arrays. Those of seats have a row for each."""

    actions: Any
    """The actions to take in the next step."""
    seed: Any
    """The seed of the next episode."""
    view: View
    """The view after the last step, or after the reset that followed it."""
    reached: View
    """The view after the last step, before any reset."""
    outcome: Outcome
    """The outcome of the last step."""
    calls: Any
    """For each worker: how many calls of simulators it has begun. The number stands still while a call hangs."""
    seat: Any
    """For each worker: the seat that it is busy with."""


def view_shapes(spec: TaskSpec) -> View:
    """Shapes of a view, with the smallest dtypes that hold all that it may say."""
    a, e, m, u = spec.agents, spec.entities, spec.subtasks, len(spec.actions)
    shapes: dict[str, Any] = {
        "entities": Shape((e, len(spec.features)), np.float32),
        "present": Shape((e,), bool),
        "visible": Shape((a, e), bool),
        "subtask": Shape((e,), smallest_int(m)),
        "active": Shape((m,), bool),
        "available": Shape((a, u), bool),
        "target": Shape((a, u), smallest_int(e)),
        "relations": Shape((a, e, len(spec.relations)), np.float32),
    }
    return View(**shapes)


def outcome_shapes(spec: TaskSpec, metrics: Sequence[str]) -> Outcome:
    """Shapes and dtypes of an outcome."""
    flag, number = Shape((), bool), Shape((), np.float32)
    shapes: dict[str, Any] = {
        "reward": number,
        "subtask_rewards": Shape((spec.subtasks,), np.float32),
        "terminated": flag,
        "truncated": flag,
        "finished": Shape((spec.subtasks,), bool),
        "success": flag,
        "metrics": dict.fromkeys(metrics, number),
    }
    return Outcome(**shapes)


def smallest_int(count: int) -> Any:
    """The smallest signed integers that hold -1 and all numbers below `count`."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if count - 1 <= np.iinfo(kind).max)


def memory_shapes(spec: TaskSpec, metrics: Sequence[str], seats: int, workers: int) -> Memory:
    """Shapes and dtypes of the shared arrays."""
    view, outcome = many(view_shapes(spec), seats), many(outcome_shapes(spec, metrics), seats)
    return Memory(
        actions=Shape((seats, spec.agents), np.int32),
        seed=Shape((seats,), np.uint32),
        view=view,
        reached=view,
        outcome=outcome,
        calls=Shape((workers,), np.int64),
        seat=Shape((workers,), np.int32),
    )


def many(shapes: Any, count: int) -> Any:
    """The shapes of `count` rows."""
    return jax.tree.map(lambda leaf: Shape((count, *leaf.shape), leaf.dtype), shapes)


class SharedFile:
    """A file without a name that lives in memory only; where there are none, a temporary file, deleted at exit.

    Nothing is left of it when the processes have ended, however they ended. Pages take memory once they are written.
    """

    def __init__(self, size: int) -> None:
        if hasattr(os, "memfd_create"):
            handle = os.memfd_create("alma-simulators")
            self.path = f"/proc/{os.getpid()}/fd/{handle}"
        else:
            handle, self.path = tempfile.mkstemp(prefix="alma-simulators-")
        os.truncate(handle, size)
        self._closing = weakref.finalize(self, _discard, handle, self.path)

    def close(self) -> None:
        self._closing()


def _discard(handle: int, path: str) -> None:
    os.close(handle)
    if not path.startswith("/proc/"):
        with suppress(OSError):
            os.unlink(path)


def open_memory(path: str, shapes: Memory) -> Memory:
    """The arrays in a file that has been made for them."""
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    leaves, structure = jax.tree.flatten(shapes)
    arrays = [np.ndarray(leaf.shape, leaf.dtype, memory, at) for leaf, at in _places(leaves)]
    return jax.tree.unflatten(structure, arrays)


def memory_size(shapes: Memory) -> int:
    """The size in bytes of the file that the arrays need."""
    return sum(_room(leaf) for leaf in jax.tree.leaves(shapes))


def _places(leaves: Sequence[Shape]) -> Iterator[tuple[Shape, int]]:
    """Every array with the place in the file where it begins."""
    at = 0
    for leaf in leaves:
        yield leaf, at
        at += _room(leaf)


def _room(leaf: Shape) -> int:
    """The bytes that are set aside for an array: a multiple of 64, so that all begin at one."""
    return -(-leaf.size * leaf.dtype.itemsize // 64) * 64
