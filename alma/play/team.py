"""A team: actors and an allocator, learned or scripted, that play together."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from jaxtyping import PRNGKeyArray

from alma.play.situation import ActionValues, Candidates, Situation, Strategy
from alma.task.view import Actions, Allocation

TeamParams: TypeAlias = dict[str, Any]
"""The parameters of a team, kept apart from it: `{"actors": ..., "allocator": ...}`."""


@runtime_checkable
class PlayingActors(Protocol):
    """The interface that actors need for playing. Keys and situations are those of one environment."""

    @property
    def knows_subtasks(self) -> bool:
        """Whether they act on allocations; False for flat actors."""

    @property
    def is_coached(self) -> bool:
        """Whether a coach gives them strategies."""

    def greedy(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
        """The action of every agent, without exploration."""

    def advise_best(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Strategy:
        """The coach's mean strategy for each agent, used until the next decision point; None without a coach."""

    def explain_actions(self, params: Any, key: PRNGKeyArray, situation: Situation) -> ActionValues | None:
        """The utilities that `greedy` compares when given the same key; None for actors without utilities."""


@runtime_checkable
class PlayingAllocator(Protocol):
    """The interface that an allocator needs for playing. Keys and situations are those of one environment."""

    @property
    def allocates(self) -> bool:
        """False if no agent is ever given a subtask."""

    @property
    def needs_state(self) -> bool:
        """Whether it reads the task state; networks only read the view."""

    @property
    def has_critic(self) -> bool:
        """Whether it has a critic that values allocations."""

    def greedy(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
        """The allocation it chooses, without exploration."""

    def explain_allocation(
        self, params: Any, key: PRNGKeyArray, situation: Situation, taken: Allocation
    ) -> Candidates | None:
        """The candidates that `greedy` chooses from when given the same key; None without a critic."""


A_co = TypeVar("A_co", bound=PlayingActors, covariant=True)
B_co = TypeVar("B_co", bound=PlayingAllocator, covariant=True)


@dataclass(frozen=True)
class Team(Generic[A_co, B_co]):
    """Actors, an allocator, and how often it allocates in play. Their parameters are kept apart, as `TeamParams`."""

    actors: A_co
    allocator: B_co
    play_period: int
    """Maximum number of steps between two allocations when the team plays; training may have another."""

    def __post_init__(self) -> None:
        if self.play_period < 1:
            raise ValueError(f"the allocation period must be at least 1 step, not {self.play_period}")


NOTHING_LEARNED: TeamParams = {"actors": {}, "allocator": {}}
"""The parameters of a team that has nothing to learn: scripted actors and a rule as allocator."""
