"""What each departure of preset `fast` from the paper is worth: success rates after equal minutes of training.

    .venv/bin/python studies/departures.py --minutes 3 --seeds 0 1 --jobs 2

Every variant is `fast` with one option as in the paper. Training speeds are measured first, on as many cores as each
job will have, on an otherwise idle machine. Then every run gets as many steps as fit into the minutes, so that learning
rate schedules end with the run and results no longer depend on the speed of the machine. Finished runs are not
repeated; interrupted ones are resumed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import tyro
from equal_minutes import measure_speeds, plan_run
from rich.console import Console

from alma.files import read_json
from alma.launch.job import Job
from alma.launch.launcher import train_all
from alma.launch.local import Local
from alma.reproduce.figures import DEPARTURES
from alma.runs.config import RunConfig
from alma.training.options import TrainingOptions, with_overrides
from alma.training.presets import FAST

TASK = "save-the-city"


def variant(changes: Mapping[str, Any]) -> TrainingOptions:
    """`fast` with these options changed."""
    return with_overrides(FAST, changes)


VARIANTS = {name: variant(changes) for name, changes in DEPARTURES.items()}


def config_of(name: str, seed: int) -> RunConfig:
    """The configuration of a variant."""
    return RunConfig(TASK, {}, "alma", "fast", seed, VARIANTS[name])


@dataclass(frozen=True)
class Departures:
    """Train variants of preset `fast` for equal minutes, and print their success rates."""

    minutes: float = 3.0
    """Training time of each run."""
    seeds: tuple[int, ...] = (0, 1)
    """Seeds of the runs of each variant."""
    jobs: int = 2
    """Number of parallel runs, each with its share of the cores."""
    only: tuple[str, ...] = ()
    """Names of the variants to train; by default all."""
    out: Path = Path("runs/departures")
    """The folder of the runs."""

    def run(self) -> None:
        unknown = set(self.only) - set(VARIANTS)
        if unknown:
            raise SystemExit(f"unknown variants {sorted(unknown)}: choose from {list(VARIANTS)}")
        console = Console()
        names = self.only or tuple(VARIANTS)
        speeds = measure_speeds({name: config_of(name, 0) for name in names}, self.jobs, self.out)
        runs = {name: [self._plan(name, seed, speeds[name]) for seed in self.seeds] for name in names}
        failed = train_all(
            [run for seeds in zip(*runs.values(), strict=True) for run in seeds], Local(self.jobs), console
        )
        console.print(table(runs, speeds), soft_wrap=True)
        if failed:
            raise SystemExit("; ".join(failed))

    def _plan(self, name: str, seed: int, speed: float) -> Job:
        """The run of a variant with a seed."""
        folder = self.out / f"{re.sub(r'[^a-zA-Z0-9.]+', '-', name)}-{seed}"
        return plan_run(config_of(name, seed), folder, self.minutes, speed)


def table(runs: Mapping[str, list[Job]], speeds: Mapping[str, float]) -> str:
    """A table of the finished runs: the success rate of the last evaluation, and the mean of the last three."""
    lines = [
        "| `fast`, but | minutes per million steps | steps | solved | each run | last three |",
        "|---|---|---|---|---|---|",
    ]
    for name, seeds in runs.items():
        results = [read_json(run.folder.result) for run in seeds if run.done]
        if results:
            last = [result["evaluation"]["success_rate"] for result in results]
            three = fmean(result["last_3_success_rate"] for result in results)
            each = ", ".join(f"{rate:.3f}" for rate in last)
            steps = f"{results[0]['step'] / 1e6:.2f} million"
            lines.append(f"| {name} | {speeds[name]} | {steps} | {fmean(last):.3f} | {each} | {three:.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    tyro.cli(Departures).run()
