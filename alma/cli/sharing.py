"""What commands that train a run share: the devices and processes that it is trained on."""

from dataclasses import dataclass

from alma.cli.arguments import Switch
from alma.runs import runtime
from alma.runs.config import RunConfig
from alma.runs.devices import use_devices
from alma.runs.distributed import join_run


@dataclass(frozen=True)
class SharingOptions:
    """On which devices a run is trained, in one process or several."""

    devices: int | None = None
    """Devices to train on: accelerators, or else cores. If not given: as before, if the run is resumed; else 1, or as
    many cores as get 64 environments and 256 transitions of a batch."""
    distributed: Switch = False
    """Train one run in several processes, on one machine or more, each on --devices of its own; start the command in
    each. SLURM, Open MPI and Kubernetes tell every process which one it is; elsewhere give --coordinator, --processes
    and --process."""
    coordinator: str | None = None
    """Address of process 0 of a distributed run, such as 10.0.0.1:1234."""
    processes: int | None = None
    """Number of processes of a distributed run."""
    process: int | None = None
    """Which process of a distributed run this one is, from 0."""

    def __post_init__(self) -> None:
        if self.devices is not None and self.devices < 1:
            raise ValueError(f"devices must be at least 1, not {self.devices}")
        if not self.distributed and (self.coordinator, self.processes, self.process) != (None, None, None):
            raise ValueError("--coordinator, --processes and --process are for --distributed")

    @property
    def arguments(self) -> tuple[str, ...]:
        """What to tell `alma resume` in other processes, each of which trains a run of its own."""
        return () if self.devices is None else ("--devices", str(self.devices))

    def begin(self, config: RunConfig, before: int | None = None) -> int:
        """Make cores devices and meet the other processes, before JAX is used; returns the number of devices of each
        process. `before` is the number of devices that the run was last trained on.
        """
        if not self.distributed:
            return use_devices(config, self.devices or before)
        runtime.use_cpu_devices(self.devices or 1)
        join_run(self.coordinator, self.processes, self.process)
        return self.devices or 1
