"""Presets: named sets of hyperparameters."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.allocators.options import AllocatorNetworkOptions, AllocatorOptions
from alma.learning.schedules import Linear
from alma.task.registry import preset_overrides
from alma.training.options import CollectionOptions, ExplorationOptions, ReportOptions, TrainingOptions, with_overrides

FAST = TrainingOptions()
"""Our own hyperparameters, for a machine with few cores: they need less computation than the paper's."""

LONG = replace(
    FAST,
    steps=12_000_000,
    play="average",
    allocator=replace(FAST.allocator, play_period=2, play_candidates=4),
    exploration=replace(FAST.exploration, action=Linear(1.0, 0.01, 500_000)),
    report=replace(FAST.report, evaluate_every=1_024_000, episodes=1024),
)
"""`fast` for runs of about half an hour: less exploration in the end; evaluates and saves averaged parameters, which
allocate more often and from more candidates."""

PAPER = TrainingOptions(
    steps=15_000_000,
    play="live",
    actors=ActorOptions(
        gamma=0.99,
        learning_rate=5e-4,
        final_rate=1.0,
        optimiser="rmsprop",
        popart=True,
        batch=32,
        window=64,
        n_step=1,
        ends="subtask",
        target_rate=1.0,
        target_episodes=200,
        networks=ActorNetworkOptions(
            trunk="attention", relations=False, places=True, width=128, hidden=64, mixer="qmix", offsets="absolute"
        ),
    ),
    allocator=AllocatorOptions(
        gamma=0.99,
        learning_rate=5e-4,
        final_rate=1.0,
        optimiser="rmsprop",
        popart=True,
        batch=400,
        proposals=32,
        variations=0,
        entropy_proposals=32,
        target_rate=1.0,
        target_episodes=50,
        networks=AllocatorNetworkOptions(kind="pointer", relations=False, places=True, width=128),
    ),
    collection=CollectionOptions(
        environments=8,
        buffer=750_000,
        decisions=200_000,
        warmup=3_200,
        steps_per_update=8,  # at every step, if an episode has finished
        episodes_per_update=1,
    ),
    exploration=ExplorationOptions(
        action=Linear(1.0, 0.05, 2_000_000),
        persistence=0.0,
        proposal=Linear(1.0, 0.05, 3_000_000),
        subtask=Linear(1.0, 0.0, 750_000),
    ),
    report=ReportOptions(chunk=512, log_every=10_240, evaluate_every=50_176, episodes=160),
)
"""The paper's table of hyperparameters, and what else is known of its experiments."""

FAITHFUL = replace(
    FAST,
    steps=1_000_000,
    actors=replace(FAST.actors, popart=True, ends="subtask", networks=replace(PAPER.actors.networks, relations=True)),
    allocator=replace(
        FAST.allocator,
        popart=True,
        proposals=32,
        variations=0,
        entropy_proposals=32,
        networks=replace(PAPER.allocator.networks, relations=True),
    ),
)
"""The paper's networks (with relations), mixer and losses; data collection and schedules are those of `fast`."""

TINY = TrainingOptions(
    steps=20_480,
    actors=ActorOptions(batch=32, networks=ActorNetworkOptions(width=16, hidden=16)),
    allocator=AllocatorOptions(
        batch=16, proposals=4, variations=2, networks=AllocatorNetworkOptions(width=16, choice_width=8)
    ),
    collection=CollectionOptions(environments=16, buffer=16_384, decisions=4_096, warmup=1_280, steps_per_update=256),
    exploration=ExplorationOptions(
        action=Linear(1.0, 0.05, 10_000), proposal=Linear(1.0, 0.05, 10_000), subtask=Linear(1.0, 0.0, 10_000)
    ),
    report=ReportOptions(chunk=1_024, log_every=2_048, evaluate_every=10_240, episodes=64, final_episodes=64),
)
"""For tests and trying things out: takes seconds, and learns next to nothing."""

PRESETS: Mapping[str, TrainingOptions] = {
    "fast": FAST,
    "long": LONG,
    "faithful": FAITHFUL,
    "paper": PAPER,
    "tiny": TINY,
}

IMAGINATION = 0.5
"""lambda of REFIL in the paper."""


def preset(name: str, task: str = "") -> TrainingOptions:
    """The hyperparameters of a preset, with the overrides of a task."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}: choose from {', '.join(PRESETS)}, or name a file (.toml, .json)")
    return with_overrides(PRESETS[name], preset_overrides(task, name))


def with_actors(options: TrainingOptions, actors: Literal["aqmix", "refil"] | None) -> TrainingOptions:
    """The options, with actors that imagine groups (refil) or do not (aqmix); None leaves them unchanged."""
    if actors is None:
        return options
    share = (options.actors.imagination or IMAGINATION) if actors == "refil" else 0.0
    return replace(options, actors=replace(options.actors, imagination=share))
