"""Options that actors and allocators share, and how options are checked."""

import math
from dataclasses import dataclass
from typing import Literal


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _require_at_least(least: float, options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        _require(least <= value < math.inf, f"{name} must be at least {least}, not {value}")


def _require_positive(options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        _require(0 < value < math.inf, f"{name} must be positive, not {value}")


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """What both levels have in common."""

    gamma: float
    """Discount of what comes later."""
    batch: int
    learning_rate: float = 1e-3
    """At the beginning."""
    final_rate: float = 0.1
    """The share of the learning rate that is left at the end of the run; it falls in a straight line."""
    optimiser: Literal["adam", "rmsprop"] = "adam"
    """The rule that turns gradients into steps."""
    clip: float = 10.0
    """The norm of gradients is cut to this."""
    target_rate: float = 0.02
    """How far the target network moves when it follows: 1 copies."""
    target_episodes: int = 0
    """Episodes between moves of the target network; 0: it moves after every update."""
    reward_scale: float = 1.0
    """Rewards are multiplied by this: what actions differ by should be no less than what networks begin with."""
    popart: bool = False
    """Normalise values by running statistics of the targets."""

    def __post_init__(self) -> None:
        _require(0 <= self.gamma <= 1, f"gamma must lie between 0 and 1, not {self.gamma}")
        _require_at_least(1, self, "batch")
        _require_at_least(0, self, "target_episodes")
        _require_positive(self, "learning_rate", "clip", "reward_scale")
        _require(0 <= self.final_rate <= 1, f"final_rate must lie between 0 and 1, not {self.final_rate}")
        _require(0 < self.target_rate <= 1, f"target_rate must lie in (0, 1], not {self.target_rate}")
