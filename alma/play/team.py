"""A team: actors and an allocator that play together, whatever they are made of."""

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from jaxtyping import PRNGKeyArray

from alma.play.situation import ActionValues, Candidates, Script, Situation, Strategy
from alma.task.view import Actions, Allocation

Params: TypeAlias = Any
"""What a team has learned: `{"actors": ..., "allocator": ...}`."""


@runtime_checkable
class PlayingActors(Protocol):
    """What playing asks of actors. Keys and situations are those of one environment."""

    @property
    def knows_subtasks(self) -> bool:
        """Whether an allocation means anything to them."""

    @property
    def is_coached(self) -> bool:
        """Whether they follow the strategies of a coach."""

    def greedy(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
        """The action of every agent, without exploration."""

    def advise_best(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Strategy:
        """The strategy of every agent from this decision on; None where there is no coach."""

    def explain_actions(self, params: Any, key: PRNGKeyArray, situation: Situation) -> ActionValues | None:
        """The values that `greedy` compares when it is given the same key; None where there are none."""


@runtime_checkable
class PlayingAllocator(Protocol):
    """What playing asks of an allocator. Keys and situations are those of one environment."""

    @property
    def allocates(self) -> bool:
        """False where nobody is ever given a subtask."""

    @property
    def needs_state(self) -> bool:
        """Whether it looks at the state of the task, which networks never do."""

    @property
    def has_critic(self) -> bool:
        """Whether it can tell the value of an allocation."""

    def greedy(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Allocation:
        """The allocation it makes, without exploration."""

    def explain_allocation(
        self, params: Any, key: PRNGKeyArray, situation: Situation, taken: Allocation
    ) -> Candidates | None:
        """What `greedy` chooses from when it is given the same key; None where there is no critic."""


A_co = TypeVar("A_co", bound=PlayingActors, covariant=True)
B_co = TypeVar("B_co", bound=PlayingAllocator, covariant=True)


@dataclass(frozen=True)
class Team(Generic[A_co, B_co]):
    """Actors, an allocator, and how often it allocates. What they have learned is kept apart, as `Params`."""

    actors: A_co
    allocator: B_co
    period: int
    """Steps between allocations, at the most."""

    def __post_init__(self) -> None:
        if self.period < 1:
            raise ValueError(f"the allocation period must be at least 1 step, not {self.period}")


NOTHING_LEARNED: Params = {"actors": {}, "allocator": {}}
"""The parameters of a team that follows scripts and rules alone."""


@dataclass(frozen=True)
class ScriptedActors:
    """Actors that follow a script."""

    script: Script

    knows_subtasks: ClassVar[bool] = True
    is_coached: ClassVar[bool] = False

    def greedy(self, params: Any, key: PRNGKeyArray, situation: Situation) -> Actions:
        return self.script(params, key, situation)

    def advise_best(self, params: Any, key: PRNGKeyArray, situation: Situation) -> None:
        return None

    def explain_actions(self, params: Any, key: PRNGKeyArray, situation: Situation) -> None:
        return None
