"""The engine that trains runs as jobs of SLURM, by way of submitit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from alma.launch.engine import ALIVE, STOPPED, Status, of_process
from alma.launch.job import Job, Resources
from alma.launch.local import check_jobs
from alma.launch.worker import Order
from alma.runs.folder import RunFolder
from alma.runs.lock import living_holder

SIGNAL_SECONDS = 90
"""Time before the end of a job at which SLURM tells it to save."""

MINUTES = 24 * 60
"""Time limit of a job, if none is given. A run that has not finished by then is submitted again and goes on."""


def require_submitit() -> Any:
    """Import `submitit`. Raises a ValueError that says how to install it if it is missing."""
    try:
        import submitit
    except ImportError:
        raise ValueError("--engine slurm needs an extra: pip install 'alma-marl[slurm]'") from None
    return submitit


@dataclass(frozen=True)
class Submission:
    """The function of a job. submitit calls `checkpoint` before the job's time is over, and submits the job again."""

    order: Order

    def __call__(self) -> int:
        return self.order.carry_out()

    def checkpoint(self) -> Any:
        """Have the run saved, and say how to go on: in the same way."""
        self.order.interrupt()
        return require_submitit().helpers.DelayedSubmission(self)


@dataclass
class SlurmJob:
    """A run in a job of SLURM."""

    job: Any
    folder: RunFolder
    stopped: bool = False

    def status(self) -> Status:
        if self.stopped:  # SLURM may take minutes to tell what became of it
            return ALIVE if living_holder(self.folder.lock) else of_process(STOPPED)
        if not self.job.done():
            return ALIVE
        error = self.job.exception()
        if error is None:
            return of_process(self.job.result())
        words = f"job {self.job.job_id}, {self.job.state}: {str(error).strip().splitlines()[-1]}"
        failed = isinstance(error, require_submitit().core.utils.FailedJobError)  # in our code: it would happen again
        return Status("ended", 1, words) if failed else Status("lost", reason=words)

    def stop(self) -> None:
        self.job.cancel(check=False)
        self.stopped = True


@dataclass
class Slurm:
    """Trains runs as jobs of SLURM, on nodes that share the storage of the run folders."""

    resources: Resources
    folder: Path
    """Folder for submitit's own files: jobs, and what they print."""
    jobs: int | None = None
    """Most runs that are submitted at a time. None: all."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of sbatch by name: `{"partition": "gpu", "time": 600}`."""
    cluster: Literal["slurm", "local"] = "slurm"
    """`local` runs jobs in processes of this machine, for tests."""
    submitted: list[SlurmJob] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_jobs(self.jobs)
        require_submitit()

    def __enter__(self) -> "Slurm":
        """Raise an error if there is no SLURM here."""
        submitit = require_submitit()
        try:
            self.executor = submitit.AutoExecutor(folder=self.folder, cluster=self.cluster)
            memory = {} if self.resources.memory is None else {"mem_gb": self.resources.memory}
            gpus = {"gpus_per_node": self.resources.gpus} if self.resources.gpus else {}
            own = {f"slurm_{name.replace('-', '_')}": value for name, value in self.options.items() if name != "time"}
            self.executor.update_parameters(
                name="alma",
                cpus_per_task=self.resources.cores,
                timeout_min=self.options.get("time", MINUTES),
                slurm_signal_delay_s=SIGNAL_SECONDS,
                **memory,
                **gpus,
                **own,
            )
        except (RuntimeError, NameError) as error:  # no sbatch; an option that submitit does not know
            raise ValueError(f"--engine slurm: {' '.join(str(error).split())}") from None
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def has_room(self) -> bool:
        self.submitted = [job for job in self.submitted if job.status() == ALIVE]
        return self.jobs is None or len(self.submitted) < self.jobs

    def start(self, job: Job) -> SlurmJob:
        order = Order.for_job(job, self.resources.cores)
        found = SlurmJob(self.executor.submit(Submission(order)), job.folder)
        self.submitted.append(found)
        return found
