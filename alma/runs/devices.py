"""The devices that a run is trained on: accelerators, or processor cores if there are none, each as a JAX device."""

import jax

from alma.runs import runtime
from alma.training.program import OneDevice, Program
from alma.training.sharding import Sharded
from alma.training.trainer import Trainer


def use_devices(count: int) -> int:
    """Make cores devices if there is no accelerator, before the first use of JAX; returns the count."""
    if count > 1:
        runtime.use_cpu_devices(count)
    return count


def make_program(trainer: Trainer, devices: int = 1) -> Program:
    """The training program of a run on the first devices of this process, or of every process of a distributed run.

    Raises a ValueError if there are fewer.
    """
    here = jax.local_devices()
    if devices > len(here):
        raise ValueError(f"devices must be at most {len(here)}, as many as JAX has here, not {devices}")
    if jax.process_count() == 1 and devices == 1:
        return OneDevice(trainer)
    chosen = [
        [device for device in jax.devices() if device.process_index == process][:devices]
        for process in range(jax.process_count())
    ]
    return Sharded(trainer, tuple(device for of_process in chosen for device in of_process))
