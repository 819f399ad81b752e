"""What training asks of an allocator, learned or not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics, Params
from alma.play.situation import Situation
from alma.play.team import PlayingAllocator
from alma.task.view import View


@dataclass(frozen=True)
class Exploration:
    """How often an allocation is not the best one."""

    proposal: Float[Array, ""]
    """The first proposal instead of the best."""
    subtask: Float[Array, ""]
    """A random subtask, agent by agent."""


@runtime_checkable
class TrainingAllocator(PlayingAllocator, Protocol):
    """What training asks of an allocator, besides what playing does. N environments are asked at once."""

    @property
    def learns(self) -> bool:
        """Whether it learns from decisions; those of others are not kept."""

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> LearnerState: ...

    def allocate(
        self, params: Params, key: PRNGKeyArray, situations: Situation, due: Bool[Array, "N"], explore: Exploration
    ) -> Int[Array, "N A"]:
        """New allocations where they are due."""

    def update(
        self,
        learner: LearnerState,
        key: PRNGKeyArray,
        decisions: replay.Decisions | None,
        view_of: Callable[[Any], View],
        clock: Clock,
    ) -> tuple[LearnerState, Metrics]:
        """One round of learning from replay."""
