"""Short runs that are really trained, to compare what becomes of them in different places."""

from dataclasses import replace
from pathlib import Path

from alma.launch.job import Job
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS
from alma.runs.weights import read_weights
from alma.training.options import ReportOptions
from helpers.doors import SMALL

TESTS = Path(__file__).parents[1]
"""Processes that are started here find `helpers.doors`."""

CHUNK = 640
CONFIG = RunConfig(
    "helpers.doors:Doors",
    preset="tiny",
    options=replace(
        SMALL,
        steps=20 * CHUNK,
        report=ReportOptions(
            chunk=CHUNK,
            log_every=CHUNK,
            evaluate_every=10 * CHUNK,
            episodes=16,
            final_episodes=16,
            checkpoint_minutes=1e-9,
        ),
    ),
)
"""A run that saves after every chunk."""


def short_runs(folder, count, chunks=20):
    """Runs of so many chunks with different seeds, each in a folder of its own."""
    options = replace(CONFIG.options, steps=chunks * CHUNK)
    configs = [replace(CONFIG, seed=seed, options=options) for seed in range(count)]
    return [Job(RunFolder(folder / f"seed-{config.seed}"), config) for config in configs]


def ending(job):
    """What a run has learned and measured, but how long it took."""
    _, weights = read_weights(job.folder.path / WEIGHTS)
    timings = ("minutes", "steps_per_second")
    lines = [{name: value for name, value in line.items() if name not in timings} for line in job.metrics]
    return {name: leaf.tobytes() for name, leaf in weights.items()}, lines
