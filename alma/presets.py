"""Hyperparameters, and the sets of them that belong together."""

from dataclasses import dataclass, field
from typing import Literal

from alma.learning.schedules import Linear


@dataclass(frozen=True)
class NetworkOptions:
    """What the networks look like."""

    trunk: Literal["pooling", "attention"] = "pooling"
    """How actors look at entities."""
    width: int = 64
    heads: int = 4
    """Of attention."""
    hidden: int = 64
    """Width of the last hidden layer of the utilities."""
    mixer: Literal["sum", "qmix"] = "sum"
    """How utilities make the value of a subtask: added up (VDN), or mixed by hypernetworks."""
    mixer_width: int = 32
    allocator_width: int = 64
    choice_width: int = 32
    """Of the part of the proposal that is computed anew for every allocation."""


@dataclass(frozen=True)
class ActorOptions:
    """The low level: Q-learning of the actors."""

    gamma: float = 0.98
    learning_rate: float = 1e-3
    batch: int = 512
    """Transitions an update."""
    n_step: int = 5
    """Steps of reward before bootstrapping; cut where the allocation changes."""
    target_rate: float = 0.02
    """How fast the target network follows, per update."""
    reward_scale: float = 0.2
    clip: float = 10.0


@dataclass(frozen=True)
class AllocatorOptions:
    """The high level: amortised Q-learning of the allocator."""

    period: int = 5
    """N_t: steps between allocations."""
    gamma: float = 0.95
    learning_rate: float = 1e-3
    batch: int = 128
    """Decisions an update."""
    proposals: int = 16
    """N_p: allocations to choose from."""
    entropy: float = 0.01
    """lambda_AQL: weight of the proposal's entropy."""
    max_age: int = 150_000
    """Decisions older than so many environment steps are not used; weights fall linearly to zero until then."""
    target_rate: float = 0.02
    reward_scale: float = 0.2
    clip: float = 10.0


@dataclass(frozen=True)
class CollectionOptions:
    """Playing, and what is remembered of it."""

    environments: int = 128
    buffer: int = 524_288
    """Environment steps kept in replay."""
    decisions: int = 131_072
    """Decisions kept in replay."""
    warmup: int = 10_240
    """Environment steps before the first update."""
    steps_per_update: int = 256
    """Environment steps between updates."""


@dataclass(frozen=True)
class ExplorationOptions:
    """How often choices are made at random; each falls linearly with environment steps."""

    action: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 250_000))
    """eps: a random action."""
    proposal: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 400_000))
    """eps_p: the first proposal instead of the best."""
    subtask: Linear = field(default_factory=lambda: Linear(1.0, 0.0, 250_000))
    """eps_r: a random subtask, agent by agent."""


@dataclass(frozen=True)
class TrainingOptions:
    """Everything that makes a training run, apart from the task."""

    networks: NetworkOptions = field(default_factory=NetworkOptions)
    actors: ActorOptions = field(default_factory=ActorOptions)
    allocator: AllocatorOptions = field(default_factory=AllocatorOptions)
    collection: CollectionOptions = field(default_factory=CollectionOptions)
    exploration: ExplorationOptions = field(default_factory=ExplorationOptions)
