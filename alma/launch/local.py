"""The engine that trains runs in processes of this machine."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from alma.launch.cores import share_out_cores
from alma.launch.engine import ALIVE, Status, of_process
from alma.launch.job import Job
from alma.launch.worker import start_process
from alma.runs.runtime import machine_memory


class Share(NamedTuple):
    """The cores and environment variables of one of several runs at a time."""

    cores: frozenset[int]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Process:
    """A run in a process of this machine."""

    process: "subprocess.Popen[bytes]"

    def status(self) -> Status:
        code = self.process.poll()
        return ALIVE if code is None else of_process(code)

    def stop(self) -> None:
        self.process.terminate()


@dataclass
class Local:
    """Trains so many runs at a time on this machine, each with cores of its own where there are enough."""

    jobs: int = 1
    cores: int | None = None
    """Cores of each run. None: an equal share."""
    memory: float | None = None
    """Memory of each run in GB. It is compared with what the machine has, and not enforced."""
    gpus: int = 0
    """Accelerators of each run. 0 leaves all of them visible."""
    taken: list[tuple[Share, Process]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_jobs(self.jobs)
        self.free = shares(self.jobs, self.cores, self.gpus)
        if self.memory is not None:
            check_memory(self.jobs, self.memory)

    def __enter__(self) -> "Local":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def has_room(self) -> bool:
        for share, process in list(self.taken):
            if process.process.poll() is not None:
                self.taken.remove((share, process))
                self.free.append(share)
        return bool(self.free)

    def start(self, job: Job) -> Process:
        share = self.free.pop(0)
        process = Process(start_process(job.folder, job.resume_arguments, share.cores, share.environment))
        self.taken.append((share, process))
        return process


def check_jobs(jobs: int) -> None:
    """Raise a ValueError unless the number of jobs is at least 1."""
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")


def check_memory(jobs: int, memory: float) -> None:
    """Raise a ValueError if so many jobs with so many GB each do not fit into this machine."""
    there = machine_memory() / 1e9
    if jobs * memory > there:
        raise ValueError(f"{jobs} jobs with {memory:g} GB each do not fit into {there:.1f} GB: choose fewer --jobs")


def shares(jobs: int, cores: int | None, gpus: int) -> list[Share]:
    """The share of each of several runs at a time in the cores and accelerators of this machine."""
    devices = accelerators() if gpus else []
    if jobs * gpus > len(devices):
        raise ValueError(
            f"{jobs} jobs with {gpus} accelerators each need {jobs * gpus}, and there are {len(devices)}: "
            "choose fewer --jobs or --gpus"
        )
    return [
        Share(own, {"CUDA_VISIBLE_DEVICES": ",".join(devices[job * gpus : (job + 1) * gpus])} if gpus else {})
        for job, own in enumerate(share_out_cores(jobs, cores))
    ]


def accelerators() -> list[str]:
    """The accelerators that this process may use, by the names that CUDA gives them."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name]
    return [str(number) for number in range(len(list(Path("/dev").glob("nvidia[0-9]*"))))]
