"""What stays in force between two decision points (allocation, strategy), and how it changes from step to step.

Training and evaluation use the same functions: `renew` at the beginning of a step, `record_actions` after acting;
`reset_where_done` where training goes on with a new episode.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.nn.trees import select
from alma.task.view import NOBODY, View


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InForce:
    """The allocation and strategy in force in each of N environments, and what is needed to tell when to renew them."""

    allocation: Int[Array, "*N A"]
    strategy: Float[Array, "*N A H"] | None
    """The coach's strategy for each agent; None without a coach."""
    last_action: Int[Array, "*N A"]
    since_decision: Int[Array, "*N"]
    """Steps since the allocation was made."""
    active: Bool[Array, "*N M"]
    """Active subtasks at the last step, to detect that one finished or appeared."""


Decide: TypeAlias = Callable[[InForce, Bool[Array, "N"]], tuple[Int[Array, "N A"], Float[Array, "N A H"] | None]]
"""(in force, mask of due decisions) -> (allocations, strategies): new ones where a decision is due, else the old ones.
"""


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


def renew(in_force: InForce, view: View, period: int, decide: Decide) -> tuple[InForce, Bool[Array, "N"]]:
    """Renew allocations and strategies where a decision is due; also returns the mask of due decisions."""
    due = jax.vmap(partial(decision_due, period=period))(
        in_force.since_decision, active_before=in_force.active, active=view.active
    )
    allocation, strategy = decide(in_force, due)
    since = jnp.where(due, 0, in_force.since_decision)
    return InForce(allocation, strategy, in_force.last_action, since, view.active), due


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


def decision_due(
    steps_since: Int[Array, ""], period: int, active_before: Bool[Array, "M"], active: Bool[Array, "M"]
) -> Bool[Array, ""]:
    """Whether this step is a decision point: `period` steps after the last, or when a subtask finishes or appears."""
    return (steps_since >= period) | jnp.any(active_before != active)


def apply_where(
    due: Bool[Array, "N"], function: Callable[[Int[Array, ""], Any], Any], inputs: Any, otherwise: Any
) -> Any:
    """Apply `function` to the rows of `inputs` that are due, in portions; the other rows of the result are `otherwise`.

    The function gets the index of the portion's first row, to vary random keys, and the rows. Decisions are due in a
    quarter to a third of all environments: computing only those saves most of the cost of allocation.
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
