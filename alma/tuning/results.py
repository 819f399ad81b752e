"""Results of a sweep: a row for each combination, over its seeds, and a record for each run."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from alma.reproduce.statistics import Estimate, mean
from alma.tuning.sweep import SweptRun


@dataclass(frozen=True)
class SweepResult:
    """Results of a method with certain options, over its finished seeds."""

    setting: str
    method: str
    options: str
    """The options that are swept, as text."""
    seeds: tuple[int, ...]
    solved: Estimate
    """Mean success rate in the last evaluations, with its interval over seeds."""
    mean_return: float
    minutes: float
    """Mean training time."""


def results_of(runs: Iterable[SweptRun]) -> list[SweepResult]:
    """The results of every combination that has a finished run."""
    found: dict[tuple[str, str, str], list[SweptRun]] = {}
    for run in runs:
        if run.job.done:
            options = ", ".join(f"{path}={value}" for path, value in run.point.items())
            found.setdefault((run.arm.setting.name, run.arm.method, options), []).append(run)
    return [_result(*names, members) for names, members in found.items()]


def _result(setting: str, method: str, options: str, runs: list[SweptRun]) -> SweepResult:
    results = [run.job.folder.read_result() for run in runs]
    return SweepResult(
        setting,
        method,
        options,
        seeds=tuple(run.seed for run in runs),
        solved=mean(np.array([result["evaluation"]["success_rate"] for result in results])),
        mean_return=float(np.mean([result["evaluation"]["mean_return"] for result in results])),
        minutes=float(np.mean([result["training_minutes"] for result in results])),
    )


def records_of(runs: Iterable[SweptRun]) -> list[dict[str, Any]]:
    """A record for every finished run, with the same keys for all."""
    done = [run for run in runs if run.job.done]
    swept = dict.fromkeys(path for run in done for path in run.point)
    return [_record(run, list(swept)) for run in done]


def _record(run: SweptRun, swept: list[str]) -> dict[str, Any]:
    result = run.job.folder.read_result()
    return {
        "run": run.job.name,
        "setting": run.arm.setting.name,
        "method": run.arm.method,
        **{path: run.point.get(path, "") for path in swept},
        "seed": run.seed,
        "steps": result["step"],
        "training_minutes": round(result["training_minutes"], 2),
        "success_rate": result["evaluation"]["success_rate"],
        "mean_return": round(result["evaluation"]["mean_return"], 4),
    }
