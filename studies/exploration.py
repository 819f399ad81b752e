"""Ways of exploring allocations after equal minutes of training: when they reach a success rate, and where they end.

    .venv/bin/python studies/exploration.py save-the-city --minutes 6 --jobs 2
    .venv/bin/python studies/exploration.py sz-disadvantage --minutes 15 --jobs 2
    .venv/bin/python studies/exploration.py village --minutes 0.5

Training speeds are measured first, on an otherwise idle machine. Finished runs are not repeated; interrupted ones are
resumed. The village is small and learned within minutes: for a first look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import tyro
from equal_minutes import measure_speeds, plan_run
from rich.console import Console

from alma.allocators.options import AllocatorExplorationOptions
from alma.files import atomic_write, read_json
from alma.launch.job import Job
from alma.launch.launcher import train_all
from alma.launch.local import Local
from alma.runs.config import RunConfig
from alma.runs.metrics import evaluation_in, read_metrics
from alma.training.options import with_overrides
from alma.training.presets import preset

KINDS: tuple[str, ...] = get_args(get_type_hints(AllocatorExplorationOptions)["kind"])


class Setting(NamedTuple):
    """A task, the options of training that differ from preset `fast`, and the success rate that is waited for."""

    task: str
    task_options: Mapping[str, Any]
    changes: Mapping[str, Any]
    level: float


SETTINGS = {
    "save-the-city": Setting("save-the-city", {}, {}, 0.8),
    "sz-disadvantage": Setting("starcraft", {"balance": "disadvantage"}, {}, 0.3),
    "village": Setting(
        "save-the-city",
        {"agents": 4, "grid_size": 10, "fire_damage": 0.01},
        {
            "actors.networks.width": 32,
            "actors.networks.hidden": 32,
            "allocator.networks.width": 32,
            "collection.warmup": 5_120,
            "exploration.action.over": 30_000,
            "exploration.proposal.over": 40_000,
            "exploration.subtask.over": 30_000,
        },
        0.8,
    ),
}


def config_of(setting: Setting, kind: str, seed: int) -> RunConfig:
    """The configuration of a run that explores in one of the ways."""
    changes = {**setting.changes, "allocator.exploration.kind": kind}
    options = with_overrides(preset("fast", setting.task), changes)
    return RunConfig(setting.task, dict(setting.task_options), "alma", "fast", seed, options)


@dataclass(frozen=True)
class Exploration:
    """Train with every way of exploring allocations for equal minutes, and print a table."""

    setting: tyro.conf.Positional[Literal["save-the-city", "sz-disadvantage", "village"]]
    """What is trained: SaveTheCity, StarCraft with stalkers and zealots at a disadvantage, or a small city."""
    minutes: float = 6.0
    """Training time of each run."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the runs of each way."""
    jobs: int = 1
    """Number of parallel runs, each with its share of the cores."""
    out: Path = Path("runs/exploration")
    """The folder of the runs."""
    results: Path = Path("results/exploration")
    """The folder of the tables."""

    def run(self) -> None:
        setting, console = SETTINGS[self.setting], Console()
        folder = self.out / self.setting
        speeds = measure_speeds({kind: config_of(setting, kind, 0) for kind in KINDS}, self.jobs, folder)
        runs = {
            kind: [
                plan_run(config_of(setting, kind, seed), folder / f"{kind}-{seed}", self.minutes, speeds[kind])
                for seed in self.seeds
            ]
            for kind in KINDS
        }
        failed = train_all(
            [run for seeds in zip(*runs.values(), strict=True) for run in seeds], Local(self.jobs), console
        )
        found = table(
            {kind: [read_run(run) for run in runs[kind] if run.done] for kind in KINDS}, speeds, setting.level
        )
        self.results.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.results / f"{self.setting}.md") as unfinished:
            unfinished.write_text(found + "\n")
        console.print(found, soft_wrap=True)
        if failed:
            raise SystemExit("; ".join(failed))


class Trained(NamedTuple):
    """What is shown of a run."""

    steps: int
    curve: list[tuple[int, float]]
    """Steps and success rate of every evaluation."""
    last: float
    """Success rate of the last evaluation, which has the most episodes."""


def read_run(run: Job) -> Trained:
    """A finished run."""
    result = read_json(run.folder.result)
    lines = [(line["step"], evaluation_in(line)) for line in read_metrics(run.folder.metrics)]
    curve = [(step, summary["success_rate"]) for step, summary in lines if summary]
    return Trained(result["step"], curve, result["evaluation"]["success_rate"])


def steps_to(curve: Sequence[tuple[int, float]], level: float) -> int | None:
    """Steps until an evaluation reaches the level; None if none does."""
    return next((step for step, rate in curve if rate >= level), None)


def table(found: Mapping[str, Sequence[Trained]], speeds: Mapping[str, float], level: float) -> str:
    """A Markdown table with one row for each way of exploring. Minutes are steps at the speed that was measured."""
    lines = [
        f"| exploration | seeds | minutes per million steps | million steps | minutes to {level:g} (each seed) "
        "| solved | each seed | standard deviation between seeds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, runs in found.items():
        if not runs:
            continue
        reached = [steps_to(run.curve, level) for run in runs]
        minutes = ", ".join("never" if step is None else f"{step / 1e6 * speeds[kind]:.1f}" for step in reached)
        last = [run.last for run in runs]
        spread = f"{stdev(last):.3f}" if len(last) > 1 else ""
        lines.append(
            f"| {kind} | {len(runs)} | {speeds[kind]:.2f} | {runs[0].steps / 1e6:.2f} | {minutes} | {fmean(last):.3f} "
            f"| {', '.join(f'{rate:.3f}' for rate in last)} | {spread} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    tyro.cli(Exploration).run()
