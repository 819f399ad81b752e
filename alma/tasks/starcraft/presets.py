"""Training options that battles have otherwise than other tasks, for each preset."""

from collections.abc import Mapping
from typing import Any

PAPER: Mapping[str, Any] = {
    "steps": 10_000_000,
    "actors.imagination": 0.5,
    "allocator.period": 3,
    "exploration.action.over": 500_000,
    "exploration.proposal.over": 2_000_000,
    "exploration.subtask.over": 500_000,
}
"""The paper's: imagined groups (REFIL), allocations more often, and shorter schedules."""

_OURS: Mapping[str, Any] = {
    "actors.imagination": 0.5,
    "allocator.period": 3,
    # Fewer updates of the actors, and an allocator that looks further ahead: battles are won by many decisions.
    "allocator.gamma": 0.99,
    "allocator.updates": 4,
    "allocator.n_step": 3,
    "collection.steps_per_update": 1024,
}

FAITHFUL: Mapping[str, Any] = {**_OURS, "steps": 2_000_000}

# What one action is worth more than another is less here than in a city: a shot, not a building. So targets have values
# of their own, and rewards are larger.
_AIM: Mapping[str, Any] = {"actors.reward_scale": 4.0, "allocator.reward_scale": 4.0}

FAST: Mapping[str, Any] = {
    **_OURS,
    **_AIM,
    "steps": 2_000_000,
    "actors.networks.aim": 64,
    "actors.learning_rate": 6e-3,
    "allocator.learning_rate": 3e-3,
    "allocator.batch": 256,
    "allocator.target_rate": 0.05,
}

LONG: Mapping[str, Any] = {
    **FAST,
    "steps": 8_000_000,
    "allocator.play_period": 0,
    "allocator.play_candidates": 1,
}

TINY: Mapping[str, Any] = {**_AIM, "actors.imagination": 0.5, "allocator.period": 3, "actors.networks.aim": 16}

PRESETS = {"fast": FAST, "long": LONG, "faithful": FAITHFUL, "paper": PAPER, "tiny": TINY}
