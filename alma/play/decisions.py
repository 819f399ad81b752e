"""Decision points: when the allocation and the strategies are renewed, and what is in force between two of them.

At a *decision point* the allocator gives every agent a subtask and the coach, if there is one, every agent a strategy.
A decision is *due* a fixed number of steps after the last one, or when a subtask finishes or appears.

Training and evaluation use the same functions. In every step: `decisions_due` and `renew`, then `record_actions` after
acting; `reset_where_done` where training goes on with a new episode.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.play.trees import select
from alma.task.view import NOBODY, View


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InForce:
    """The allocation and strategies in force in each of N environments, and what tells whether a decision is due."""

    allocation: Int[Array, "*N A"]
    strategy: Float[Array, "*N A H"] | None
    """The coach's strategy for each agent; None without a coach."""
    last_action: Int[Array, "*N A"]
    """The last action of each agent, -1 before the first."""
    since_decision: Int[Array, "*N"]
    """Steps since the last decision."""
    active: Bool[Array, "*N M"]
    """Active subtasks at the last step, to detect that one finished or appeared."""


def nothing_in_force(environments: int, agents: int, subtasks: int, period: int, strategy: Any) -> InForce:
    """The initial `InForce` of N episodes: nobody is allocated, and a decision is due."""
    nobody = jnp.full((environments, agents), NOBODY, jnp.int32)
    return InForce(
        allocation=nobody,
        strategy=strategy,
        last_action=nobody,
        since_decision=jnp.full(environments, period, jnp.int32),
        active=jnp.zeros((environments, subtasks), bool),
    )


def decisions_due(in_force: InForce, view: View, period: int) -> Bool[Array, "N"]:
    """Mask of the environments in which a decision is due."""
    return jax.vmap(partial(decision_due, period=period))(
        in_force.since_decision, active_before=in_force.active, active=view.active
    )


def decision_due(
    since_decision: Int[Array, ""], period: int, active_before: Bool[Array, "M"], active: Bool[Array, "M"]
) -> Bool[Array, ""]:
    """Whether a decision is due: `period` steps after the last one, or when a subtask finishes or appears."""
    return (since_decision >= period) | jnp.any(active_before != active)


def renew(
    in_force: InForce,
    view: View,
    due: Bool[Array, "N"],
    allocation: Int[Array, "N A"],
    strategy: Float[Array, "N A H"] | None,
) -> InForce:
    """Put allocations and strategies in force: the new ones where a decision was due, those of before elsewhere."""
    since = jnp.where(due, 0, in_force.since_decision)
    return InForce(allocation, strategy, in_force.last_action, since, view.active)


def record_actions(in_force: InForce, actions: Int[Array, "N A"]) -> InForce:
    """Store the actions just taken and count the step."""
    return replace(in_force, last_action=actions, since_decision=in_force.since_decision + 1)


def reset_where_done(in_force: InForce, done: Bool[Array, "N"], period: int) -> InForce:
    """Where an episode is over, forget its allocation and last actions, and make a decision due."""
    nobody = jnp.full_like(in_force.allocation, NOBODY)
    return replace(
        in_force,
        allocation=select(done, nobody, in_force.allocation),
        last_action=select(done, nobody, in_force.last_action),
        since_decision=jnp.where(done, period, in_force.since_decision),
        active=in_force.active & ~done[:, None],
    )


def apply_where(
    condition: Bool[Array, "N"], function: Callable[[Int[Array, ""], Any], Any], inputs: Any, otherwise: Any
) -> Any:
    """Apply `function` to the rows of `inputs` where the condition holds; the other rows of the result are `otherwise`.

    Rows are computed in portions. The function gets the index of a portion's first row, to make its random keys differ
    from those of other portions, and the rows. Decisions are due in a quarter to a third of all environments: computing
    only those saves most of the cost of allocation.
    """
    count = condition.shape[0]
    size = max(1, count // 4)
    rows = jnp.nonzero(condition, size=-(-count // size) * size, fill_value=count)[0]

    def portion(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        first, results = carry
        at = jax.lax.dynamic_slice_in_dim(rows, first, size)
        computed = function(first, jax.tree.map(lambda leaf: leaf[jnp.minimum(at, count - 1)], inputs))
        return first + size, jax.tree.map(lambda old, new: old.at[at].set(new, mode="drop"), results, computed)

    total = jnp.sum(condition)
    return jax.lax.while_loop(lambda carry: carry[0] < total, portion, (jnp.int32(0), otherwise))[1]
