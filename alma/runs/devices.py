"""The devices that a run is trained on: accelerators, or processor cores if there are none, each as a JAX device."""

from functools import partial

import jax

from alma.runs import runtime
from alma.runs.config import RunConfig
from alma.training.options import TrainingOptions
from alma.training.program import OneDevice, Program
from alma.training.sharding import Sharded, share_of
from alma.training.trainer import Trainer

ENVIRONMENTS_EACH, BATCH_EACH = 64, 256
"""The least environments and transitions of a batch for which a core becomes a device of its own by default."""


def usual_devices(config: RunConfig) -> int:
    """The number of processor cores to share a run out over if nobody says otherwise: as many as have enough to do.

    1 for code of the user's own, which may compute something over a whole batch.
    """
    options = config.options
    transitions = options.actors.batch * options.actors.window
    most = min(runtime.cores(), options.collection.environments // ENVIRONMENTS_EACH, transitions // BATCH_EACH)
    return 1 if config.own_code else max(filter(partial(_divides, options), range(2, most + 1)), default=1)


def _divides(options: TrainingOptions, devices: int) -> bool:
    """Whether so many devices can have equal shares of a run."""
    try:
        share_of(options, devices)
    except ValueError:
        return False
    return True


def use_devices(config: RunConfig, asked: int | None = None) -> int:
    """The number of devices to train on. Makes cores devices if there are no accelerators, before JAX is used."""
    count = asked or usual_devices(config)
    if count > 1:
        runtime.use_cpu_devices(count)
    if asked or count == 1:
        return count
    return min(count, jax.local_device_count()) if jax.default_backend() == "cpu" else 1


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
