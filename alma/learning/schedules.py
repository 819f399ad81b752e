"""Schedules of hyperparameters that change during training."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


@dataclass(frozen=True)
class Linear:
    """A linear schedule from `start` to `end`, constant afterwards."""

    start: float
    """Value at the first step."""
    end: float
    """Value at the end of the schedule, and ever after."""
    over: int
    """Environment steps from `start` to `end`."""

    def __post_init__(self) -> None:
        if self.over < 1:
            raise ValueError(f"over must be at least 1 step, not {self.over}")

    def __call__(self, steps: Int[Array, ""] | int) -> Float[Array, ""]:
        done = jnp.clip(steps / self.over, 0, 1)
        return self.start + (self.end - self.start) * done
