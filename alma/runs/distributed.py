"""One run in several processes, which may be on several hosts, by `jax.distributed`.

All processes run the same program. Process 0 alone writes files; the others compute the same numbers and write nothing.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np
from jax.experimental import multihost_utils


class PartnerLostError(ConnectionError):
    """Another process of the run cannot be reached any more."""


def join_run(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> None:
    """Connect to the other processes of a run; call it before JAX is used.

    Under SLURM, Open MPI and Kubernetes JAX finds out everything by itself. Elsewhere, `coordinator` is the address of
    process 0 as host:port, `processes` is the number of processes, and `process` is the number of this one. Process 0
    then listens at that address only.
    """
    given = [value is not None for value in (coordinator, processes, process)]
    if any(given) and not all(given):
        raise ValueError("--coordinator, --processes and --process belong together: give all three or none")
    if processes is not None and process is not None and not 0 <= process < processes:
        raise ValueError(f"--process must lie between 0 and {processes - 1}, not {process}")
    try:
        jax.distributed.initialize(coordinator, processes, process, coordinator_bind_address=coordinator)
    except (RuntimeError, ValueError) as error:
        advice = (
            "" if any(given) else "; without SLURM, Open MPI or Kubernetes give --coordinator, --processes, --process"
        )
        raise ValueError(f"the processes of the run did not meet: {error}{advice}") from None


def is_writer() -> bool:
    """Whether this process writes the files of the run."""
    return jax.process_index() == 0


def in_any_process(flag: bool) -> bool:
    """Whether the flag is set in any process of the run. All must call it together."""
    if jax.process_count() == 1:
        return flag
    return bool(np.any(multihost_utils.process_allgather(np.asarray(flag))))


@contextmanager
def partners_watched(how_to_go_on: str) -> Iterator[None]:
    """Context manager that turns errors of communication with other processes into a `PartnerLostError`.

    `how_to_go_on` is the command to start all of them again with.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        # Errors of XLA begin with the name of their kind.
        if jax.process_count() == 1 or not re.match(r"[A-Z_]+: ", str(error)):
            raise
        reason = str(error).splitlines()[0]
        raise PartnerLostError(
            f"another process of the run was lost; start all of them again with: {how_to_go_on} ({reason})"
        ) from error


def writer_first(action: Callable[[], None]) -> None:
    """Act in process 0, and let the others wait until it has. What is wrong there ends all of them."""
    error: Exception | None = None
    if is_writer():
        try:
            action()
        except (OSError, ValueError) as caught:
            error = caught
    if in_any_process(error is not None):
        raise error or ValueError("process 0 of the run has ended with an error: see its messages")
