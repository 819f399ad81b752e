"""Runs that are trained for equal minutes: as many steps as fit into them at the speed of each, measured beforehand.

Learning rate schedules end with the run, and results do not depend on what else the machine does meanwhile.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from alma.files import read_json, write_json
from alma.launch.cores import share_out_cores
from alma.launch.job import Job
from alma.runs.benchmark import benchmark_training
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder


def measure_speeds(configs: Mapping[str, RunConfig], jobs: int, out: Path) -> dict[str, float]:
    """Minutes per million steps of each configuration, on the cores of one of `jobs` jobs; stored in a file in `out`.

    The machine should be idle otherwise.
    """
    cores, share = os.sched_getaffinity(0), share_out_cores(jobs)[0]
    file = out / f"minutes_per_million_steps_{len(share)}_cores.json"
    known: dict[str, float] = read_json(file) if file.exists() else {}
    os.sched_setaffinity(0, share)
    try:
        for name, config in configs.items():
            if name not in known:
                known[name] = benchmark_training(config.make_trainer())["minutes_per_million_steps"]
                out.mkdir(parents=True, exist_ok=True)
                write_json(file, known)
    finally:
        os.sched_setaffinity(0, cores)
    return known


def plan_run(config: RunConfig, folder: Path, minutes: float, speed: float, evaluations: int = 10) -> Job:
    """A run with as many steps as fit into the minutes, at `speed` minutes per million, and so many evaluations."""
    options, steps = config.options, round(minutes / speed * 1e6)
    report = replace(options.report, evaluate_every=max(options.report.chunk, steps // evaluations))
    return Job(RunFolder(folder), replace(config, options=replace(options, steps=steps, report=report)))
