"""Dividing processor cores among runs: two runs that compete for cores are slower than two with their own cores."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None  # type: ignore[assignment]


def available_cores() -> list[int]:
    """The cores that this process may use; empty if the system does not report them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def share_out_cores(jobs: int, cores_each: int | None = None) -> list[frozenset[int]]:
    """Divide the cores among jobs, equally or with so many for each.

    With fewer cores than jobs, all jobs share all cores; if the system does not report cores, the sets are empty.
    """
    cores = available_cores()
    share = len(cores) // jobs if cores_each is None else cores_each
    if cores and cores_each is not None and jobs * cores_each > len(cores):
        raise ValueError(
            f"{jobs} jobs with {cores_each} cores each need {jobs * cores_each}, and there are {len(cores)}: "
            "choose fewer --jobs or --cores"
        )
    return [frozenset(cores[job * share : (job + 1) * share] or cores) for job in range(jobs)]


@contextmanager
def reserved_cores(wanted: int) -> Iterator[frozenset[int]]:
    """Context manager that reserves so many cores of this machine against other processes that do the same.

    Where engines only count cores, as Ray does, their workers agree like this on who has which. If too few are free,
    as where a machine says that it has more than it has, the first ones are shared. Reservations die with the process.
    """
    cores = available_cores()
    with ExitStack() as held:
        free: list[int] = []
        for core in cores if fcntl and wanted < len(cores) else []:
            if len(free) < wanted and held.enter_context(_reserved(core)):
                free.append(core)
        others = [core for core in cores if core not in free]
        yield frozenset([*free, *others][:wanted])


@contextmanager
def _reserved(core: int) -> Iterator[bool]:
    """Context manager that tries to reserve one core; yields whether it was free."""
    with (_folder() / f"core-{core}").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _folder() -> Path:
    """The user's folder of reservations on this machine."""
    folder = Path(tempfile.gettempdir()) / f"alma-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else: set TMPDIR to another folder")
    return folder
