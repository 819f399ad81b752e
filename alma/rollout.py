"""Running a task: decision points, and parallel environments that reset themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.task import Actions, Allocation, Outcome, Task, View

Tree = TypeVar("Tree")


class Situation(NamedTuple):
    """What there is to decide on, in one environment."""

    state: Any
    view: View
    allocation: Allocation
    """The one in force; to an allocator, the one it may replace."""
    last_action: Actions
    """-1 before the first."""
    strategy: Float[Array, "A H"] | None = None
    """What a coach has advised; None where there is no coach."""


Allocator: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Allocation]
"""(parameters, key, situation) -> allocation, made at decision points."""

Policy: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Actions]
"""(parameters, key, situation) -> actions, made at every step."""

Coach: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Float[Array, "A H"] | None]
"""(parameters, key, situation) -> strategy, made at decision points."""


class Ratings(NamedTuple):
    """What actors think of their actions."""

    values: Float[Array, "A U"]
    """The utility of every action to every agent."""
    available: Bool[Array, "A U"]
    """Actions that may be taken."""
    sees: Bool[Array, "A E"]
    """What each agent looks at."""


class Considered(NamedTuple):
    """Allocations that an allocator has chosen from, the one it took first. One may occur several times."""

    allocations: Int[Array, "P A"]
    values: Float[Array, "P"]
    """What its critic thinks of each."""


Rate: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Ratings | None]
"""(parameters, key, situation) -> ratings; given the key of the policy, those it acted on."""

Weigh: TypeAlias = Callable[[Any, PRNGKeyArray, Situation, Allocation], Considered | None]
"""(parameters, key, situation, taken) -> what was considered; given the key of the allocator, what it took it from."""


def no_coach(params: Any, key: PRNGKeyArray, situation: Situation) -> None:
    """Agents are told nothing."""


def no_ratings(params: Any, key: PRNGKeyArray, situation: Situation) -> None:
    """Who acts by a script rates nothing."""


def no_critic(params: Any, key: PRNGKeyArray, situation: Situation, taken: Allocation) -> None:
    """Who allocates by a rule considers nothing."""


def decision_due(
    steps_since: Int[Array, ""], period: int, active_before: Bool[Array, "M"], active: Bool[Array, "M"]
) -> Bool[Array, ""]:
    """Whether to allocate anew: after `period` steps, and whenever a subtask finishes or appears."""
    return (steps_since >= period) | jnp.any(active_before != active)


def select(condition: Bool[Array, "*batch"], yes: Tree, no: Tree) -> Tree:
    """Choose between two trees, row by row where the condition has rows."""

    def pick(a: Array, b: Array) -> Array:
        shape = condition.shape + (1,) * (a.ndim - condition.ndim)
        return jnp.where(condition.reshape(shape), a, b)

    return jax.tree.map(pick, yes, no)


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


def zeros_like(shapes: Any) -> Any:
    """Zeros in the shapes that `jax.eval_shape` tells."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Environments:
    """N environments that run side by side; each has its next initial state in store."""

    state: Any
    """Task states, N rows."""
    spare: Any
    """Initial states, N rows: where each environment goes on when its episode is over."""
    spare_used: Bool[Array, "N"]


def start(task: Task, key: PRNGKeyArray, count: int) -> Environments:
    """Begin an episode in each of `count` environments."""
    # One call, since drawing initial states is what takes long to compile.
    drawn = jax.vmap(task.reset)(jax.random.split(key, 2 * count))
    return Environments(
        state=jax.tree.map(lambda leaf: leaf[:count], drawn),
        spare=jax.tree.map(lambda leaf: leaf[count:], drawn),
        spare_used=jnp.zeros(count, bool),
    )


def advance(
    task: Task, key: PRNGKeyArray, environments: Environments, actions: Int[Array, "N A"]
) -> tuple[Environments, Any, Outcome]:
    """Step every environment and restart the finished ones.

    Returns the environments, the states they reached before any restart, and the outcomes.
    """
    step_key, reset_key = jax.random.split(key)
    count = actions.shape[0]
    reached, outcome = jax.vmap(task.step)(jax.random.split(step_key, count), environments.state, actions)
    restarted = _restart(task, reset_key, environments, reached, outcome.done)
    return restarted, reached, outcome


def _restart(
    task: Task, key: PRNGKeyArray, environments: Environments, reached: Any, done: Bool[Array, "N"]
) -> Environments:
    """Move finished environments on to their spare states.

    Drawing an initial state in every environment at every step would cost as much as stepping. Spares are
    drawn all together, only when one is needed a second time, and none is handed out twice.
    """
    exhausted = jnp.any(done & environments.spare_used)
    spare = jax.lax.cond(
        exhausted,
        lambda: jax.vmap(task.reset)(jax.random.split(key, done.shape[0])),
        lambda: environments.spare,
    )
    return Environments(
        state=select(done, spare, reached),
        spare=spare,
        spare_used=(environments.spare_used & ~exhausted) | done,
    )
