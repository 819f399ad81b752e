"""The engine that trains runs on a Ray cluster."""

from dataclasses import dataclass, field
from typing import Any

from alma.launch.engine import ALIVE, Status, of_process
from alma.launch.job import Job, Resources
from alma.launch.local import check_jobs
from alma.launch.worker import Order


def require_ray() -> Any:
    """Import `ray`. Raises a ValueError that says how to install it if it is missing."""
    try:
        import ray
    except ImportError:
        raise ValueError("--engine ray needs an extra: pip install 'alma-marl[ray]'") from None
    return ray


@dataclass(frozen=True)
class RayTask:
    """A run in a task of Ray."""

    ray: Any
    result: Any
    """The reference to the exit status of the run's process."""

    def status(self) -> Status:
        ready, _ = self.ray.wait([self.result], timeout=0)
        if not ready:
            return ALIVE
        errors = self.ray.exceptions
        try:
            return of_process(self.ray.get(self.result))
        except errors.TaskCancelledError:
            return Status("lost", reason="its task was cancelled")
        except errors.RayTaskError as error:  # in our code: it would happen again
            return Status("ended", 1, str(error.cause))
        except errors.RayError as error:
            return Status("lost", reason=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")

    def stop(self) -> None:
        self.ray.cancel(self.result)


@dataclass
class Ray:
    """Trains runs on the nodes of a Ray cluster, which must share the storage of the run folders."""

    resources: Resources
    address: str | None = None
    """Address of the cluster. None: the one of `RAY_ADDRESS`, or the one that runs on this machine."""
    jobs: int | None = None
    """Most runs at a time. None: as many as the cluster has cores for."""
    tasks: list[RayTask] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_jobs(self.jobs)
        self.ray = require_ray()

    def __enter__(self) -> "Ray":
        try:
            self.ray.init(address=self.address or "auto", log_to_driver=False, logging_level="ERROR")
        except ConnectionError as error:
            place = f"at {self.address}" if self.address else "on this machine"
            reason = " ".join(str(error).split())
            raise ValueError(f"no Ray cluster was found {place}: start one, or give its --address ({reason})") from None
        return self

    def __exit__(self, *_: object) -> None:
        self.ray.shutdown()

    def has_room(self) -> bool:
        self.tasks = [task for task in self.tasks if task.status().phase == "alive"]
        return len(self.tasks) < (self.jobs or self._places())

    def _places(self) -> int:
        """Number of runs that the cores of the cluster can train at a time."""
        nodes = [node["Resources"].get("CPU", 0) for node in self.ray.nodes() if node["Alive"]]
        return sum(int(cores // self.resources.cores) for cores in nodes)

    def start(self, job: Job) -> RayTask:
        memory = {} if self.resources.memory is None else {"memory": int(self.resources.memory * 1e9)}
        # A task that dies is started again by the launcher, which does so for all engines.
        remote = self.ray.remote(num_cpus=self.resources.cores, num_gpus=self.resources.gpus, max_retries=0, **memory)(
            carry_out
        )
        task = RayTask(self.ray, remote.remote(Order.for_job(job, self.resources.cores)))
        self.tasks.append(task)
        return task


def carry_out(order: Order) -> int:
    """The function that a worker of Ray calls."""
    return order.carry_out()
