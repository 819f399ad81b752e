"""Options of the actors: their networks and how they learn."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from alma.learning.options import LearningOptions, require, require_at_least

ValueEnds: TypeAlias = Literal["subtask", "episode"]
"""What ends the value of a subtask: the end of the subtask alone, or the end of the episode too."""

NextAllocation: TypeAlias = Literal["kept", "renewed"]
"""The allocation under which the actions in the next state are chosen when bootstrapping from it."""


@dataclass(frozen=True)
class ActorNetworkOptions:
    """Networks of the actors."""

    trunk: Literal["pooling", "attention"] = "pooling"
    """How agents encode the entities they observe: sums over (agent, entity) pairs (pooling), or multi-head
    attention."""
    relations: bool = True
    """Give attention layers the relations of entities to the agent (offset, distance, ...). Pooling always has them."""
    places: bool = False
    """Give networks the absolute positions of entities, in addition to positions relative to the agent."""
    width: int = 64
    """Width of the embeddings of entities and of (agent, entity) pairs."""
    heads: int = 4
    """Number of attention heads, of the trunk and of the QMIX mixer."""
    hidden: int = 64
    """Width of the last hidden layer of the utility networks."""
    normalise: bool = True
    """Apply layer normalisation to the sums of the pooling trunk."""
    aim: int = 0
    """Width of a network, the same for all entities, that adds to an action's value a term for its target; 0: none. For
    tasks whose actions differ by their target."""
    mixer: Literal["sum", "sum-and-value", "qmix", "independent"] = "sum"
    """How the utilities of a subtask's agents become its value: summed (sum, as in VDN), summed and added to a value of
    their situation (sum-and-value, as in VDN-S), by hypernetworks (qmix), or not at all, so that every agent learns for
    itself (independent)."""
    mixer_width: int = 32
    """Width of the QMIX mixer's hidden layer, and of the network for the situation's value (sum-and-value)."""
    hyper_width: int = 128
    """Width of the QMIX mixer's hypernetworks."""
    mixing: Literal["softmax", "absolute"] = "softmax"
    """How the QMIX mixer's weights are made positive: by softmax, or as absolute values."""
    offsets: Literal["signed", "absolute"] = "signed"
    """Biases of the QMIX mixer: as the hypernetworks output them (signed), or their absolute values."""

    def __post_init__(self) -> None:
        require(self.relations or self.places, "without relations, networks need places: set places too")
        require_at_least(1, self, "width", "heads", "hidden", "mixer_width", "hyper_width")
        require_at_least(0, self, "aim")
        attending = ("mixer_width",) if self.trunk == "attention" and self.mixer == "sum-and-value" else ()
        for name in ("width", "hyper_width", *attending):
            size = getattr(self, name)
            require(
                size % self.heads == 0, f"{name} must be a multiple of the {self.heads} heads of attention, not {size}"
            )


@dataclass(frozen=True, kw_only=True)
class ActorOptions(LearningOptions):
    """The actors: Q-learning of the actions of agents."""

    gamma: float = 0.98
    """Discount factor per environment step."""
    batch: int = 512
    """Windows of consecutive transitions per gradient update."""
    window: int = 1
    """Consecutive transitions in each window that is sampled from replay."""
    n_step: int = 5
    """Rewards summed before bootstrapping (n-step); fewer if the allocation changes."""
    trace_decay: float = 0.0
    """Lambda of Peng's Q(lambda), from 0 to 1: how far rewards of later steps of a window replace bootstrapped values.
    0: n-step returns."""
    ends: ValueEnds = "episode"
    """Where TD targets stop bootstrapping: only where the subtask is finished (subtask), or also where the episode
    terminates for another reason, such as another army breaking through (episode)."""
    next_allocation: NextAllocation = "kept"
    """Allocation under which the best actions in the next state are chosen when bootstrapping: the one that agents
    acted under (kept), or the one in force in the next state (renewed). They are always valued under the first."""
    imagination: float = 0.0
    """Weight of the loss of REFIL's imagined groups (lambda), from 0 to 1; the rest is the TD loss of the mixed values.
    0: no imagined groups."""
    advice: float = 5e-5
    """Weight of the variational terms that make actions depend on a coach's strategy (lambda_vi of COPA)."""
    networks: ActorNetworkOptions = field(default_factory=ActorNetworkOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.imagination <= 1, f"imagination must lie between 0 and 1, not {self.imagination}")
        require(
            not self.imagination or self.networks.mixer != "independent",
            "imagined groups need a mixer: choose another one than independent, or set imagination to 0 (aqmix)",
        )
        require(0 <= self.trace_decay <= 1, f"trace_decay must lie between 0 and 1, not {self.trace_decay}")
        require(
            not self.trace_decay or (self.window > 1 and self.n_step == 1),
            "trace_decay needs windows of several steps and one-step targets: set window to 2 or more, and n_step to 1",
        )
        require(
            not self.trace_decay or self.networks.mixer != "independent",
            "trace_decay needs a value for each subtask: choose another mixer than independent, or set it to 0",
        )
        require_at_least(0, self, "advice")
        require_at_least(1, self, "window", "n_step")
