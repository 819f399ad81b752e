"""Decision points: when allocations are renewed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def decision_due(
    steps_since: Int[Array, ""], period: int, active_before: Bool[Array, "M"], active: Bool[Array, "M"]
) -> Bool[Array, ""]:
    """Whether to allocate anew: after `period` steps, and whenever a subtask finishes or appears."""
    return (steps_since >= period) | jnp.any(active_before != active)


def only_where(
    due: Bool[Array, "N"], function: Callable[[Int[Array, ""], Any], Any], inputs: Any, otherwise: Any
) -> Any:
    """Apply a function of (portion, rows) where it is due, and give other rows `otherwise`.

    Decisions are due in a quarter to a third of all environments: computing only those, portion by portion, saves
    most of the cost of allocation.
    """
    count = due.shape[0]
    room = max(1, count // 4)
    rows = jnp.nonzero(due, size=-(-count // room) * room, fill_value=count)[0]

    def portion(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        first, results = carry
        at = jax.lax.dynamic_slice_in_dim(rows, first, room)
        found = function(first, jax.tree.map(lambda leaf: leaf[jnp.minimum(at, count - 1)], inputs))
        return first + room, jax.tree.map(lambda old, new: old.at[at].set(new, mode="drop"), results, found)

    total = jnp.sum(due)
    return jax.lax.while_loop(lambda carry: carry[0] < total, portion, (jnp.int32(0), otherwise))[1]
