"""Train methods on a task for equal minutes, and compare them. Runs that are there already are kept.

python -m examples.compare examples.foraging:Foraging --minutes 3 --seeds 0 1 --out runs/foraging
"""

import argparse
import signal
from pathlib import Path
from typing import Any

import alma
from alma.cli.arguments import parse_setting
from alma.runs.signals import Interrupted

METHODS = ("alma", "heuristic", "flat")
QUICK = {
    "steps": 100_000_000,  # minutes end the runs
    "collection.environments": 32,
    "collection.buffer": 131_072,
    "collection.warmup": 4_096,
    "collection.steps_per_update": 128,
    "exploration.action.over": 50_000,
    "exploration.proposal.over": 50_000,
    "exploration.subtask.over": 50_000,
    "report.chunk": 5_120,
    "report.log_every": 5_120,
    "report.evaluate_every": 51_200,
    "report.episodes": 64,
}
"""For simulators that take as long as learning does: fewer environments, more updates, less exploration."""


def train(task: str, method: str, seed: int, minutes: float, out: Path, options: dict[str, Any]) -> None:
    """Train until the time is up. What has been learned is saved, as if the run had been stopped by hand."""

    def stop_in_time(progress: alma.Progress) -> None:
        if progress.seconds >= 60 * minutes:
            signal.raise_signal(signal.SIGINT)

    try:
        alma.train(
            task, method=method, seed=seed, out=out, task_options=options, options=QUICK, on_progress=stop_in_time
        )
    except Interrupted as stopped:
        print(f"{out}: {stopped}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="module:Class")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="option of the task")
    parser.add_argument("--minutes", type=float, default=3, help="training time of a run")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--out", type=Path, default=Path("runs"))
    asked = parser.parse_args()
    options = dict(parse_setting(setting) for setting in asked.set)
    runs = [asked.out / f"{method}-{seed}" for seed in asked.seeds for method in asked.methods]
    for run in runs:
        if not run.exists():
            method, _, seed = run.name.rpartition("-")
            train(asked.task, method, int(seed), asked.minutes, run, options)
    comparison = alma.compare([str(run) for run in runs], trust=frozenset({asked.task}))
    comparison.write(asked.out / "comparison")
    print(comparison.table)


if __name__ == "__main__":
    main()
