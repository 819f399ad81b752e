"""Settings of the process: a persistent compilation cache, and a memory allocator tuned for large arrays."""

import ctypes
import gc
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache
from platformdirs import user_cache_path

CACHE_VARIABLE = "ALMA_CACHE"

MALLOC_VARIABLE = "ALMA_MALLOC"

OFF = ("off", "0", "no", "false")


def configure() -> None:
    """Set the compilation cache and the memory allocator of this process, unless `ALMA_CACHE` or `ALMA_MALLOC` is off.

    The command line and `alma.train` call it; importing the package does not.
    """
    if not _switched_off(CACHE_VARIABLE):
        use_compilation_cache()
    if not _switched_off(MALLOC_VARIABLE):
        tune_malloc()


def _switched_off(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in OFF


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files that hold the most bytes a container may use."""

UNKNOWN = 2**62
"""Stands for the size of a memory that cannot be found out."""


def machine_memory() -> int:
    """The memory of this machine in bytes, or what this container may use of it."""
    found = [UNKNOWN]
    with suppress(ValueError, OSError, AttributeError):  # some systems do not tell
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in LIMITS:
        with suppress(ValueError, OSError):  # there is no container, or no limit
            found.append(int(file.read_text()))
    return min(found)


def cache_folder() -> Path:
    """The folder of compiled programs: the one named by `ALMA_CACHE`, or a folder in the user's cache.

    A program is compiled for a number of cores, which is not part of JAX's cache key: so it is part of the path.
    """
    folder = Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("alma") / "xla")
    return folder / f"{cores()}-cores"


def use_compilation_cache() -> None:
    """Cache compiled programs on disk, unless the user has already configured JAX's compilation cache."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def one_device_per_core() -> None:
    """Make every processor core a JAX device of its own, unless JAX has already been initialised.

    A program on one device runs only its largest loops in parallel; one program per core keeps all cores busy.
    """
    use_cpu_devices(cores())


def use_cpu_devices(count: int) -> None:
    """Let JAX treat the processor as so many devices, unless it has already been initialised."""
    with suppress(RuntimeError):  # too late: JAX is initialised
        jax.config.update("jax_num_cpu_devices", count)


def collect_garbage_seldom() -> None:
    """Run Python's garbage collector less often, and exclude all existing objects from it.

    Tracing creates a great many long-lived objects; by default the collector scans them again and again, which takes a
    seventh of the time before the first step.
    """
    gc.freeze()
    gc.set_threshold(100_000)


@contextmanager
def no_compilation_cache() -> Iterator[None]:
    """Context manager that disables the compilation cache, to measure compilation times."""
    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX remembers whether the cache is on
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def tune_malloc() -> bool:
    """Stop the C library from returning large blocks to the kernel; returns whether the settings were accepted.

    By default, glibc maps every large temporary array anew and unmaps it when it is freed, so that each use faults its
    pages in again. Only glibc has these settings; elsewhere nothing happens.

    The number of arenas is left alone: with a single one, threads wait for each other at every allocation, which takes
    long where compiling has left the heap in pieces.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    trim_threshold, top_pad, mmap_max = -1, -2, -4
    settings = {trim_threshold: 2**31 - 1, top_pad: 2**26, mmap_max: 0}
    mallopt = ctypes.CDLL(None).mallopt
    accepted = [mallopt(name, value) == 1 for name, value in settings.items()]
    return all(accepted)
