"""Parallel environments with automatic reset."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from alma.play.cond import cond
from alma.play.trees import select
from alma.task.outcome import Outcome
from alma.task.task import Task


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Environments:
    """The states of N parallel environments, and an initial state in reserve for each one's next episode."""

    state: Any
    """Task states, N rows."""
    spare: Any
    """Initial states, N rows: each environment continues from its own when its episode is over; None where the task
    itself begins new episodes."""
    spare_used: Bool[Array, "N"]
    """Whether that initial state has been used, so that a new one must be drawn before the next reset."""


@runtime_checkable
class SelfResetting(Protocol):
    """A task that steps N environments together, and begins new episodes itself where one is over."""

    def start(self, key: PRNGKeyArray, count: int) -> Any:
        """Initial states, N rows."""

    def advance(self, key: PRNGKeyArray, state: Any, actions: Int[Array, "N A"]) -> tuple[Any, Any, Outcome]:
        """Returns the states to go on from, the states reached before any reset, and the outcomes."""


def start(task: Task, key: PRNGKeyArray, count: int) -> Environments:
    """Reset `count` environments."""
    if isinstance(task, SelfResetting):
        return Environments(task.start(key, count), spare=None, spare_used=jnp.zeros(count, bool))
    # A single call draws both: resetting takes long to compile.
    drawn = jax.vmap(task.reset)(jax.random.split(key, 2 * count))
    return Environments(
        state=jax.tree.map(lambda leaf: leaf[:count], drawn),
        spare=jax.tree.map(lambda leaf: leaf[count:], drawn),
        spare_used=jnp.zeros(count, bool),
    )


def advance(
    task: Task, key: PRNGKeyArray, environments: Environments, actions: Int[Array, "N A"]
) -> tuple[Environments, Any, Outcome]:
    """Step every environment and reset those whose episode is over.

    Returns the environments, the states they reached before any reset, and the outcomes.
    """
    if isinstance(task, SelfResetting):
        state, reached, outcome = task.advance(key, environments.state, actions)
        return replace(environments, state=state), reached, outcome
    step_key, reset_key = jax.random.split(key)
    count = actions.shape[0]
    reached, outcome = jax.vmap(task.step)(jax.random.split(step_key, count), environments.state, actions)
    restarted = _restart(task, reset_key, environments, reached, outcome.done)
    return restarted, reached, outcome


def _restart(
    task: Task, key: PRNGKeyArray, environments: Environments, reached: Any, done: Bool[Array, "N"]
) -> Environments:
    """Put environments whose episode is over into their spare initial states.

    Drawing an initial state in every environment at every step would cost as much as stepping. So all spares are
    redrawn together, only when one is needed a second time, and none is used twice.
    """
    exhausted = jnp.any(done & environments.spare_used)
    spare = cond(
        exhausted,
        lambda key, spare: jax.vmap(task.reset)(jax.random.split(key, done.shape[0])),
        lambda key, spare: spare,
        key,
        environments.spare,
    )
    return Environments(
        state=select(done, spare, reached),
        spare=spare,
        spare_used=(environments.spare_used & ~exhausted) | done,
    )
