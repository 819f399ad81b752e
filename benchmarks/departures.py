"""What each departure of preset `fast` from the paper buys: cities saved after equal minutes of training.

    .venv/bin/python benchmarks/departures.py --minutes 5 --seeds 0 1

Every variant is `fast` with one thing as the paper has it. Speeds are measured first, with nothing else running on the
machine, so that every run is given as many steps as fit into the minutes and schedules of learning rates end with it.
From then on it does not matter how fast the machine is: when all speeds are known, the same command with other
`--seeds` may run beside this one. Runs that are finished are not repeated, and one that was interrupted goes on.
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
        names = self.only or tuple(VARIANTS)
        for name in names:
            self._speed(name)
        for name in names:
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
            folder.create(RunConfig(TASK, {}, "alma", "fast", seed, self._timed(name)))
        with make_display(console, quiet=False) as display:
            return Run(folder, folder.read_config(), display).train()

    def _speed(self, name: str) -> float:
        """Minutes for a million steps, measured once."""
        file = self.out / "minutes_per_million_steps.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        if name not in known:
            trainer = RunConfig(TASK, {}, "alma", "fast", 0, VARIANTS[name]).make_trainer()
            known[name] = benchmark_training(trainer)["minutes_per_million_steps"]
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, known)
        return known[name]

    def _timed(self, name: str) -> TrainingOptions:
        """As many steps as fit into the minutes, with ten evaluations."""
        options = VARIANTS[name]
        steps = round(self.minutes / self._speed(name) * 1e6)
        report = replace(options.report, evaluate_every=max(options.report.chunk, steps // 10), episodes=512)
        return replace(options, steps=steps, report=report)


if __name__ == "__main__":
    tyro.cli(Departures).run()
