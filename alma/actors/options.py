"""Options of the actors: their networks and how they learn."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from alma.learning.options import LearningOptions, _require, _require_at_least

Ends: TypeAlias = Literal["subtask", "episode"]
"""Where the value of a subtask ends."""

NextAllocation: TypeAlias = Literal["kept", "renewed"]
"""Under which allocation agents look at the next state when they bootstrap from it."""


@dataclass(frozen=True)
class ActorNetworkOptions:
    """What the networks of the low level look like."""

    trunk: Literal["pooling", "attention"] = "pooling"
    """How actors look at entities."""
    relations: bool = True
    """Whether attention uses what entities are to an agent (offset, distance, ...)."""
    places: bool = False
    """Whether networks see where on the map entities are, besides where they are from an agent."""
    width: int = 64
    """Of what networks make of entities and of pairs of agent and entity."""
    heads: int = 4
    """Of attention."""
    hidden: int = 64
    """Width of the last hidden layer of the utilities."""
    normalise: bool = True
    """Whether pooling normalises its sums (layer normalisation)."""
    aim: int = 0
    """Width of a network by which the target of an action adds to its value, the same for all targets: for tasks in
    which actions differ by whom they are aimed at. 0: none."""
    mixer: Literal["sum", "qmix", "independent"] = "sum"
    """How utilities make the value of a subtask: added up (VDN), mixed by hypernetworks, or not at all: then every
    agent learns for itself."""
    mixer_width: int = 32
    """Of the mixer's hidden layer."""
    hyper_width: int = 128
    """Of the mixer's hypernetworks."""
    mixing: Literal["softmax", "absolute"] = "softmax"
    """How the mixer's weights are made positive."""
    offsets: Literal["signed", "absolute"] = "signed"
    """How the biases of QMIX are used: as they come, or their absolute values."""

    def __post_init__(self) -> None:
        _require(self.relations or self.places, "without relations, networks need places: set places too")
        _require_at_least(1, self, "width", "heads", "hidden", "mixer_width", "hyper_width")
        _require_at_least(0, self, "aim")
        for name in ("width", "hyper_width"):
            size = getattr(self, name)
            _require(
                size % self.heads == 0, f"{name} must be a multiple of the {self.heads} heads of attention, not {size}"
            )


@dataclass(frozen=True, kw_only=True)
class ActorOptions(LearningOptions):
    """The low level: Q-learning of the actors."""

    gamma: float = 0.98
    """Discount of an environment step."""
    batch: int = 512
    """Windows an update."""
    window: int = 1
    """Transitions that follow each other, in a window."""
    n_step: int = 5
    """Steps of reward before bootstrapping; cut where the allocation changes."""
    ends: Ends = "episode"
    """Where the value of a subtask ends: where that subtask is finished (subtask), or also where the episode terminates
    for another reason, as when another army breaks through (episode)."""
    next_allocation: NextAllocation = "kept"
    """The allocation under which the best actions in the next state are chosen when bootstrapping: the one that agents
    acted under (kept), or the one that follows it (renewed). Their values are always those under the first."""
    imagination: float = 0.0
    """lambda of REFIL: the share of the loss from imagined groups; 0: attention QMIX alone."""
    advice: float = 5e-5
    """lambda_vi of COPA: weight of the terms that make a coach's advice tell in what agents do."""
    networks: ActorNetworkOptions = field(default_factory=ActorNetworkOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 <= self.imagination <= 1, f"imagination must lie between 0 and 1, not {self.imagination}")
        _require(
            not self.imagination or self.networks.mixer != "independent",
            "imagined groups need a mixer: choose sum or qmix instead of independent, or set imagination to 0 (aqmix)",
        )
        _require_at_least(0, self, "advice")
        _require_at_least(1, self, "window", "n_step")
