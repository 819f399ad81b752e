"""What actors and allocators choose from (`Situation`), and explanations of their choices (`ActionValues`,
`Candidates`)."""

from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Bool, Float, Int

from alma.play.decisions import InForce
from alma.task.view import Actions, Allocation, View

Strategy: TypeAlias = Float[Array, "*b A H"] | None
"""The coach's strategy vector for each agent; None without a coach."""


class Situation(NamedTuple):
    """Everything that actors and an allocator choose from, in one environment; or in N, with a leading axis."""

    state: Any
    """The task state; only heuristics and scripted policies look at it."""
    view: View
    allocation: Allocation
    """The allocation in force; for an allocator, the one it may replace."""
    last_action: Actions
    """The last action of each agent, -1 before the first."""
    strategy: Strategy = None


def situations_of(state: Any, view: View, in_force: InForce) -> Situation:
    """The situations of N environments."""
    return Situation(state, view, in_force.allocation, in_force.last_action, in_force.strategy)


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
