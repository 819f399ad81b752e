"""The interface that an allocator, learned or not, needs for training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics
from alma.nn.params import Params
from alma.play.situation import Situation
from alma.play.team import PlayingAllocator
from alma.task.view import View


@dataclass(frozen=True)
class AllocationExploration:
    """Probabilities of random allocations while training."""

    proposal: Float[Array, ""]
    """Probability of taking the first proposal instead of the candidate of highest value."""
    subtask: Float[Array, ""]
    """Probability that an agent is given a random subtask."""


@runtime_checkable
class TrainingAllocator(PlayingAllocator, Protocol):
    """The interface that an allocator needs for training, beside `PlayingAllocator`. Inputs are of N environments."""

    @property
    def learns(self) -> bool:
        """Whether it learns from decisions; if not, they are not stored in replay."""

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> LearnerState:
        """The learner state before the first update."""

    def allocate(
        self,
        params: Params,
        key: PRNGKeyArray,
        situations: Situation,
        due: Bool[Array, "N"],
        exploration: AllocationExploration,
    ) -> Int[Array, "N A"]:
        """New allocations, with exploration, where a decision is due; the current ones elsewhere."""

    def update(
        self,
        learner: LearnerState,
        key: PRNGKeyArray,
        decisions: replay.Decisions | None,
        view_of: Callable[[Any], View],
        clock: Clock,
    ) -> tuple[LearnerState, Metrics]:
        """The gradient steps of one update, on batches from replay."""
