"""How much memory a run needs, from its options alone: known before anything is compiled.

An estimate: the train state is counted exactly, and of what an update and a step compute, everything is counted from
when it is computed until it is used for the last time. Compiled programs need somewhat less, since they merge
operations.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from alma.training.trainer import Trainer

IN_PLACE = frozenset(["dynamic_update_slice", "scatter", "scatter-add"])
"""Operations that overwrite their first operand."""


@lru_cache(maxsize=8)
def bytes_needed(trainer: Trainer) -> int:
    """The memory that training needs, in bytes, estimated."""
    state = trainer.state_like()
    update = trainer.update.trace(trainer, state).jaxpr
    step = jax.make_jaxpr(trainer.step)(state)
    return sum(map(_size, jax.tree.leaves(state))) + max(peak_bytes(update.jaxpr), peak_bytes(step.jaxpr))


def peak_bytes(jaxpr: Any) -> int:
    """Most bytes that the results of a program's operations take at a time; not counting what it is given."""
    last_use = {var: place for place, operation in enumerate(jaxpr.eqns) for var in _variables(operation.invars)}
    last_use |= dict.fromkeys(_variables(jaxpr.outvars), len(jaxpr.eqns))
    kept: dict[Any, int] = {}
    most = 0
    for place, operation in enumerate(jaxpr.eqns):
        inside = max(map(peak_bytes, _programs_in(operation)), default=0)
        if operation.primitive.name not in IN_PLACE:
            kept |= {var: _size(var.aval) for var in operation.outvars}
        most = max(most, sum(kept.values()) + inside)
        kept = {var: size for var, size in kept.items() if last_use.get(var, -1) > place}
    return most


def _variables(atoms: Any) -> list[Any]:
    """The variables among the operands of an operation, which may be numbers too."""
    return [atom for atom in atoms if not isinstance(atom, core.Literal)]


def _programs_in(operation: Any) -> Iterator[Any]:
    """The programs that an operation runs, such as the body of a loop or the branches of a conditional."""
    for value in operation.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, core.Jaxpr):
                yield part
            elif isinstance(part, core.ClosedJaxpr):
                yield part.jaxpr


def _size(leaf: Any) -> int:
    """The bytes of an array, known by its shape and dtype."""
    width = 8 if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.dtype.itemsize
    return math.prod(leaf.shape) * int(width)
