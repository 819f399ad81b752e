"""Everything that decides in a task, ready to play."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax

from alma.play.situation import Allocator, Coach, Policy, Rate, Weigh, no_coach, no_critic, no_ratings


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["params"],
    meta_fields=["policy", "allocator", "period", "coach", "rate", "weigh"],
)
@dataclass(frozen=True)
class Players:
    """Everything that decides in a task: actors, an allocator and its period, and what both have learned."""

    policy: Policy
    allocator: Allocator
    period: int = 5
    params: Any = None
    coach: Coach = no_coach
    """Advises the actors whenever there is a new allocation."""
    rate: Rate = no_ratings
    """What actors think of their actions."""
    weigh: Weigh = no_critic
    """What the allocator has considered."""

    def __post_init__(self) -> None:
        if self.period < 1:
            raise ValueError(f"the allocation period must be at least 1 step, not {self.period}")
