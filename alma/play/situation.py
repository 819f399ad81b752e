"""What there is to decide on, and what those who decide can tell of it."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.task.view import Actions, Allocation, View

Strategy: TypeAlias = Float[Array, "*b A H"] | None
"""What a coach advises every agent; None where there is no coach."""


class Situation(NamedTuple):
    """What there is to decide on, in one environment."""

    state: Any
    view: View
    allocation: Allocation
    """The one in force; to an allocator, the one it may replace."""
    last_action: Actions
    """-1 before the first."""
    strategy: Strategy = None


Rule: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Allocation]
"""An allocation by rule: (parameters, key, situation) -> allocation. The parameters are there for learned ones."""

Script: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Actions]
"""Actions by rule: (parameters, key, situation) -> actions."""


class ActionValues(NamedTuple):
    """What actors expect of their actions."""

    values: Float[Array, "A U"]
    """The utility of every action to every agent."""
    available: Bool[Array, "A U"]
    """Actions that may be taken."""
    sees: Bool[Array, "A E"]
    """What each agent attends to."""


class Candidates(NamedTuple):
    """Allocations that an allocator has chosen from, the one it took first. One may occur several times."""

    allocations: Int[Array, "P A"]
    values: Float[Array, "P"]
    """The critic's value of each."""
