"""What each departure of preset `fast` from the paper buys: cities saved after equal minutes of training.

    .venv/bin/python benchmarks/departures.py --minutes 5 --seeds 0 1

Every variant is `fast` with one thing as the paper has it. Its speed is measured first, so that the run is given as
many steps as fit into the minutes and schedules of learning rates end with it. Runs that are finished are not
repeated, and one that was interrupted goes on. Nothing else should be running on the machine.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import tyro
from rich.console import Console

from alma.benchmark import benchmark_training
from alma.configuration import RunConfig
from alma.presets import FAST, TrainingOptions
from alma.report.progress import make_display
from alma.reproduce.figures import DEPARTURES, changed
from alma.run import Run, RunFolder, write_json

TASK = "save-the-city"


def variant(changes: Mapping[str, Any]) -> TrainingOptions:
    """`fast` with these options changed."""
    options = FAST
    for path, value in changes.items():
        options = changed(options, path, value)
    return options


VARIANTS = {name: variant(changes) for name, changes in DEPARTURES.items()}


@dataclass(frozen=True)
class Departures:
    """Train variants of preset `fast` for equal minutes, and print what they reach."""

    minutes: float = 5.0
    """Of training, each run."""
    seeds: tuple[int, ...] = (0, 1)
    """Runs of each variant."""
    only: tuple[str, ...] = ()
    """Names of variants; all if not given."""
    out: Path = Path("runs/departures")
    """Where the runs go."""

    def run(self) -> None:
        unknown = set(self.only) - set(VARIANTS)
        if unknown:
            raise SystemExit(f"unknown variants {sorted(unknown)}: choose from {list(VARIANTS)}")
        console = Console()
        for name in self.only or VARIANTS:
            results = [self._train(name, seed, console) for seed in self.seeds]
            rates = [result["last_3_success_rate"] for result in results]
            console.print(
                f"{name}: {fmean(rates):.3f} ({', '.join(f'{rate:.3f}' for rate in rates)}) after "
                f"{results[0]['step']:,} steps in {fmean(result['training_minutes'] for result in results):.1f} minutes"
            )

    def _train(self, name: str, seed: int, console: Console) -> dict[str, Any]:
        folder = RunFolder(self.out / f"{name.replace(' ', '-').replace(',', '')}-{seed}")
        if folder.result.exists():
            return json.loads(folder.result.read_text())
        if not folder.config.exists():
            folder.create(RunConfig(TASK, {}, "alma", "fast", seed, self._timed(name, VARIANTS[name])))
        with make_display(console, quiet=False) as display:
            return Run(folder, folder.read_config(), display).train()

    def _timed(self, name: str, options: TrainingOptions) -> TrainingOptions:
        """As many steps as fit into the minutes, with ten evaluations."""
        speeds = self.out / "minutes_per_million_steps.json"
        known = json.loads(speeds.read_text()) if speeds.exists() else {}
        if name not in known:
            measured = benchmark_training(RunConfig(TASK, {}, "alma", "fast", 0, options).make_trainer())
            known[name] = measured["minutes_per_million_steps"]
            speeds.parent.mkdir(parents=True, exist_ok=True)
            write_json(speeds, known)
        steps = round(self.minutes / known[name] * 1e6)
        report = replace(options.report, evaluate_every=max(options.report.chunk, steps // 10), episodes=512)
        return replace(options, steps=steps, report=report)


if __name__ == "__main__":
    tyro.cli(Departures).run()
