"""What there is to decide on, and the signatures of those who decide."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.task.view import Actions, Allocation, View


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
