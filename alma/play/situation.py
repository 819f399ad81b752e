"""The inputs of a decision (`Situation`), and explanations of decisions (`ActionValues`, `Candidates`)."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.task.view import Actions, Allocation, View

Strategy: TypeAlias = Float[Array, "*b A H"] | None
"""The coach's strategy vector for each agent; None without a coach."""


class Situation(NamedTuple):
    """What actors or an allocator decide from, in one environment."""

    state: Any
    """The task state; only heuristics and scripted policies look at it."""
    view: View
    allocation: Allocation
    """The allocation in force; for an allocator, the one it may replace."""
    last_action: Actions
    """The last action of each agent, -1 before the first."""
    strategy: Strategy = None


Rule: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Allocation]
"""A rule that allocates: (parameters, key, situation) -> allocation. Rules that were not learned ignore the parameters.
"""

Script: TypeAlias = Callable[[Any, PRNGKeyArray, Situation], Actions]
"""A rule that acts: (parameters, key, situation) -> actions."""


class ActionValues(NamedTuple):
    """The utilities of all actions, and what they are based on."""

    values: Float[Array, "A U"]
    """The utility of every action of every agent."""
    available: Bool[Array, "A U"]
    """Actions that may be taken."""
    sees: Bool[Array, "A E"]
    """Entities that each agent attends to."""


class Candidates(NamedTuple):
    """Allocations that an allocator chose from. The first one is the one it took; there may be duplicates."""

    allocations: Int[Array, "P A"]
    values: Float[Array, "P"]
    """The critic's value of each."""
