"""Shared by commands that train many runs: options of launching, and tables of runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.table import Table

from alma.cli.arguments import parse_setting
from alma.launch.engine import Engine
from alma.launch.estimate import clock
from alma.launch.job import Job, Resources, time_for
from alma.launch.local import Local, check_jobs
from alma.launch.ray import Ray
from alma.launch.slurm import Slurm


@dataclass(frozen=True)
class LaunchOptions:
    """Where runs are trained, and the resources of each."""

    engine: Literal["local", "ray", "slurm"] = "local"
    """Where runs are trained: on this machine, on a Ray cluster, or by SLURM."""
    jobs: int | None = None
    """Runs to train at a time. If not given: 1 on this machine, all that fit on Ray, all on SLURM."""
    cores: int | None = None
    """Processor cores of each run. If not given: an equal share of this machine, or 1 on Ray and SLURM."""
    memory: float | None = None
    """Memory of each run in GB. If not given, it is not limited on this machine and Ray; SLURM has its default."""
    gpus: int = 0
    """Accelerators of each run."""
    address: str | None = None
    """Address of the Ray cluster, such as 10.0.0.1:6379. If not given: RAY_ADDRESS, or the one on this machine."""
    slurm: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """Option of sbatch, such as --slurm partition=gpu or --slurm time=600 (minutes); may be repeated."""

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_jobs(self.jobs)
        _ = self.resources
        if self.address is not None and self.engine != "ray":
            raise ValueError("--address is for --engine ray")
        if self.slurm and self.engine != "slurm":
            raise ValueError("--slurm is for --engine slurm")
        if not isinstance(self.slurm_options.get("time", 0), int):
            raise ValueError("write --slurm time=MINUTES, as a whole number")

    @property
    def resources(self) -> Resources:
        """The resources of each run on Ray and SLURM."""
        return Resources(1 if self.cores is None else self.cores, self.memory, self.gpus)

    @property
    def slurm_options(self) -> dict[str, Any]:
        return dict(map(parse_setting, self.slurm))

    @property
    def parallel(self) -> int:
        """How many runs are trained at a time, for estimates on this machine."""
        return self.jobs or 1

    def make(self, out: Path) -> Engine:
        """The engine. `out` is the folder of what it writes besides runs."""
        if self.engine == "ray":
            return Ray(self.resources, self.address, self.jobs)
        if self.engine == "slurm":
            return Slurm(self.resources, out / "slurm", self.jobs, self.slurm_options)
        return Local(self.parallel, self.cores, self.memory, self.gpus)


def plan_table(jobs: list[Job], parallel: int) -> Table:
    """A table of runs: state, steps, and estimated time."""
    caption = f"about {clock(time_for(jobs, parallel))} on 2 cores"
    table = Table(caption=caption + (f" with {parallel} jobs" if parallel > 1 else ", one run at a time"))
    for column in ("run", "state", "steps", "about"):
        table.add_column(column, justify="left" if column in ("run", "state") else "right", overflow="fold")
    for job in jobs:
        table.add_row(job.name, job.state, f"{job.config.options.steps:,}", clock(job.minutes))
    return table


def results_table(jobs: Iterable[Job]) -> Table:
    """The last evaluation of every finished run."""
    table = Table()
    for column in ("run", "steps", "minutes", "solved", "return"):
        table.add_column(column, justify="left" if column == "run" else "right", overflow="fold")
    for job in jobs:
        if job.done:
            result = job.folder.read_result()
            last = result["evaluation"]
            cells = (f"{result['training_minutes']:.1f}", f"{last['success_rate']:.1%}", f"{last['mean_return']:.2f}")
            table.add_row(job.name, f"{result['step']:,}", *cells)
    return table
