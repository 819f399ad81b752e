"""Options that actors and allocators share, and how options are checked."""

import math
from dataclasses import dataclass
from typing import Literal


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def require_at_least(least: float, options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        require(least <= value < math.inf, f"{name} must be at least {least}, not {value}")


def require_positive(options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        require(0 < value < math.inf, f"{name} must be positive, not {value}")


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """Options of learning that actors and allocators share."""

    gamma: float
    """Discount factor."""
    batch: int
    """Samples per gradient update."""
    learning_rate: float = 1e-3
    """Initial learning rate."""
    final_rate: float = 0.1
    """Learning rate at the end of training, as a fraction of the initial one; it falls linearly."""
    falls_from: float = 0.0
    """Fraction of training after which the learning rate begins to fall; until then it stays at its initial value."""
    optimiser: Literal["adam", "rmsprop"] = "adam"
    """Optimiser of all networks."""
    clip: float = 10.0
    """Largest global norm of gradients; larger gradients are scaled down to it."""
    target_rate: float = 0.02
    """How far the target network moves towards the live network when it is updated; 1 copies it."""
    target_episodes: int = 0
    """Finished episodes between updates of the target network; 0 updates it after every gradient update."""
    reward_scale: float = 1.0
    """Factor on rewards in TD targets; the allocator's are also divided by its period. Raise it where the values of
    different actions differ by less than the outputs of untrained networks do."""
    popart: bool = False
    """Normalise value targets by their running mean and standard deviation (Pop-Art)."""

    def __post_init__(self) -> None:
        require(0 <= self.gamma <= 1, f"gamma must lie between 0 and 1, not {self.gamma}")
        require_at_least(1, self, "batch")
        require_at_least(0, self, "target_episodes")
        require_positive(self, "learning_rate", "clip", "reward_scale")
        require(0 <= self.final_rate <= 1, f"final_rate must lie between 0 and 1, not {self.final_rate}")
        require(0 <= self.falls_from < 1, f"falls_from must lie in [0, 1), not {self.falls_from}")
        require(0 < self.target_rate <= 1, f"target_rate must lie in (0, 1], not {self.target_rate}")
