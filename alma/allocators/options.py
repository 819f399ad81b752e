"""Options of a learned allocator: its networks and how it learns."""

from dataclasses import dataclass, field
from typing import Literal

from alma.learning.options import LearningOptions, require, require_at_least, require_positive


@dataclass(frozen=True)
class AllocatorNetworkOptions:
    """Networks of the allocator."""

    kind: Literal["pairs", "pointer"] = "pairs"
    """Networks of the allocator: embeddings of (agent, subtask) pairs, or the paper's pointer network and attention
    critic."""
    width: int = 64
    """Width of the pair embeddings, or of the pointer network and its critic."""
    heads: int = 4
    """Number of attention heads of the pointer network and its critic."""
    choice_width: int = 32
    """Width of the layers of the pair networks that are evaluated for every candidate allocation."""
    relations: bool = True
    """Give the pointer network and its critic the relations of entities to agents (offset, distance, ...). Pair
    networks always have them."""
    places: bool = False
    """Give networks the absolute positions of entities, in addition to positions relative to the agent."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "width", "heads", "choice_width")
        require(self.relations or self.places, "without relations, networks need places: set places too")
        require(
            self.relations or self.kind == "pointer",
            "pair networks are made of relations: set relations, or choose the pointer network",
        )
        require(
            self.width % self.heads == 0,
            f"width must be a multiple of the {self.heads} heads of attention, not {self.width}",
        )


@dataclass(frozen=True)
class AllocatorExplorationOptions:
    """How the allocator explores in training. `ExplorationOptions` schedules how much; thompson uses no schedule."""

    kind: Literal["epsilon", "noise", "thompson"] = "epsilon"
    """How allocations are explored: by random subtasks for single agents, as in the paper (epsilon), by noise on the
    logits of the proposal network (noise), or by critics that each decide in some of the environments (thompson)."""
    deviation: float = 2.0
    """Standard deviation of the noise on logits at the start (kind noise)."""
    critics: int = 5
    """Number of critics that decide (kind thompson)."""

    def __post_init__(self) -> None:
        require_positive(self, "deviation")
        require(self.critics >= 2, f"critics must be at least 2, since one cannot disagree, not {self.critics}")


@dataclass(frozen=True, kw_only=True)
class AllocatorOptions(LearningOptions):
    """The allocator: amortised Q-learning of which agent gets which subtask."""

    gamma: float = 0.95
    """Discount factor per decision of the allocator."""
    batch: int = 128
    """Decisions per gradient update."""
    updates: int = 1
    """Gradient updates of the allocator for each one of the actors."""
    n_step: int = 1
    """Decisions whose rewards are summed before bootstrapping (n-step returns)."""
    period: int = 5
    """Environment steps between allocations (N_t), unless a subtask finishes or appears before."""
    play_period: int = 0
    """Environment steps between allocations in evaluation and use; 0: as in training."""
    proposals: int = 16
    """Candidate allocations sampled from the proposal network per decision (N_p); the critic picks the best."""
    variations: int = 8
    """Further candidates: so many of the sampled allocations with one agent moved to a random subtask."""
    play_candidates: int = 1
    """Factor on proposals and variations when a policy is evaluated or used."""
    entropy: float = 0.01
    """Weight of the proposal network's entropy in its loss (lambda_AQL)."""
    entropy_proposals: int = 0
    """Sampled allocations along which the entropy of the proposal network is estimated; 0: along the best one alone,
    which is cheaper."""
    max_age: int = 150_000
    """Age, in environment steps, from which decisions are not replayed; before, older ones are replayed less often."""
    networks: AllocatorNetworkOptions = field(default_factory=AllocatorNetworkOptions)
    exploration: AllocatorExplorationOptions = field(default_factory=AllocatorExplorationOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, self, "updates", "n_step", "period", "proposals", "play_candidates", "max_age")
        require_at_least(0, self, "entropy")
        require(
            0 <= self.entropy_proposals <= self.proposals,
            f"entropy_proposals must lie between 0 and the {self.proposals} proposals, not {self.entropy_proposals}",
        )
        require(self.period <= 10_000, f"period must be at most 10000, not {self.period}")
        require(
            self.play_period >= 0, f"play_period must be a number of steps, or 0 for the period, not {self.play_period}"
        )
        require(
            0 <= self.variations <= self.proposals,
            f"variations must lie between 0 and the {self.proposals} proposals, not {self.variations}",
        )
