"""Options of a learned allocator: its networks and how it learns."""

from dataclasses import dataclass, field
from typing import Literal

from alma.learning.options import LearningOptions, _require, _require_at_least


@dataclass(frozen=True)
class AllocatorNetworkOptions:
    """What the networks of the high level look like."""

    kind: Literal["pairs", "pointer"] = "pairs"
    """Codes of (agent, subtask) pairs, or the paper's pointer network and attention critic."""
    width: int = 64
    """Of the codes of pairs, or of the pointer network and its critic."""
    heads: int = 4
    """Of attention."""
    choice_width: int = 32
    """Of the parts of the pair networks that are computed anew for every allocation."""
    relations: bool = True
    """Whether the pointer network and its critic see what entities are to an agent (offset, distance, ...); pair
    networks always do."""
    places: bool = False
    """Whether networks see where on the map entities are, besides where they are from an agent."""

    def __post_init__(self) -> None:
        _require_at_least(1, self, "width", "heads", "choice_width")
        _require(self.relations or self.places, "without relations, networks need places: set places too")
        _require(
            self.relations or self.kind == "pointer",
            "pair networks are made of relations: set relations, or choose the pointer network",
        )
        _require(
            self.width % self.heads == 0,
            f"width must be a multiple of the {self.heads} heads of attention, not {self.width}",
        )


@dataclass(frozen=True, kw_only=True)
class AllocatorOptions(LearningOptions):
    """The high level: amortised Q-learning of the allocator."""

    gamma: float = 0.95
    """Discount of a decision."""
    batch: int = 128
    """Decisions an update."""
    updates: int = 1
    """Updates for each one of the actors."""
    n_step: int = 1
    """Decisions whose rewards are added up before bootstrapping."""
    period: int = 5
    """N_t: steps between allocations."""
    play_period: int = 0
    """The same where what was learned is played, in evaluations and ever after; 0: as in training."""
    proposals: int = 16
    """N_p: allocations to choose from."""
    variations: int = 8
    """More allocations to choose from: proposals with one agent sent elsewhere at random."""
    play_candidates: int = 1
    """How many times as many of both there are where what was learned is played, in evaluations and ever after."""
    entropy: float = 0.01
    """lambda_AQL: weight of the proposal's entropy."""
    entropy_proposals: int = 0
    """Proposals along which that entropy is measured; 0: along the best allocation only, which is cheaper."""
    max_age: int = 150_000
    """Decisions older than so many environment steps are not used; until then they are drawn less and less often."""
    networks: AllocatorNetworkOptions = field(default_factory=AllocatorNetworkOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_at_least(1, self, "updates", "n_step", "period", "proposals", "play_candidates", "max_age")
        _require_at_least(0, self, "entropy")
        _require(
            0 <= self.entropy_proposals <= self.proposals,
            f"entropy_proposals must lie between 0 and the {self.proposals} proposals, not {self.entropy_proposals}",
        )
        _require(self.period <= 10_000, f"period must be at most 10000, not {self.period}")
        _require(
            self.play_period >= 0, f"play_period must be a number of steps, or 0 for the period, not {self.play_period}"
        )
        _require(
            0 <= self.variations <= self.proposals,
            f"variations must lie between 0 and the {self.proposals} proposals, not {self.variations}",
        )
