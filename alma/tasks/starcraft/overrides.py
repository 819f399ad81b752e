"""The StarCraft task's overrides of training options, for each preset."""

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
"""The paper's options for StarCraft: REFIL, more frequent allocations and shorter schedules."""

_OURS: Mapping[str, Any] = {
    "actors.imagination": 0.5,
    "allocator.period": 3,
    # Fewer updates of the actors, and a longer horizon of the allocator: a battle is won by many decisions.
    "allocator.gamma": 0.99,
    "allocator.updates": 4,
    "allocator.n_step": 3,
    "collection.steps_per_update": 1024,
}

FAITHFUL: Mapping[str, Any] = {**_OURS, "steps": 1_000_000}

# Values of actions differ less here than in SaveTheCity: by a shot, not a building. So rewards are scaled up, and
# targets contribute to the values of actions (`aim`).
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

# A new allocation cuts n-step returns of the whole team; lambda-returns go on for the subtasks whose own team stays.
# After 2 million steps, they have done neither better nor worse than n-step returns. Values go on beyond the defeat
# that another army caused, which is better.
_LAMBDA_RETURNS: Mapping[str, Any] = {
    "actors.ends": "subtask",
    "actors.n_step": 1,
    "actors.window": 8,
    "actors.batch": 64,
    "actors.trace_decay": 0.8,
}

LONG: Mapping[str, Any] = {
    **FAST,
    **_LAMBDA_RETURNS,
    "steps": 16_000_000,
    "allocator.play_period": 0,
    "allocator.play_candidates": 1,
}

TINY: Mapping[str, Any] = {**_AIM, "actors.imagination": 0.5, "allocator.period": 3, "actors.networks.aim": 16}

PRESET_OVERRIDES = {"fast": FAST, "long": LONG, "faithful": FAITHFUL, "paper": PAPER, "tiny": TINY}
