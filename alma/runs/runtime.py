"""Settings of the process: a compilation cache that outlives it, and a memory allocator fit for large arrays."""

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
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder() -> Path:
    """Where compiled programs are kept: in the folder named by `ALMA_CACHE`, or one of the user's cache.

    A program is compiled for a number of cores, which JAX does not look at when it finds it again.
    """
    folder = Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("alma") / "xla")
    return folder / f"{cores()}-cores"


def use_compilation_cache() -> None:
    """Keep compiled programs on disk, unless the user has told JAX where to keep them already."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def one_device_per_core() -> None:
    """Let JAX treat every processor core as a device of its own, unless it has started already.

    A program for one device shares out only its largest loops; two programs side by side keep two cores busy.
    """
    with suppress(RuntimeError):  # too late: JAX has counted its devices
        jax.config.update("jax_num_cpu_devices", cores())


def collect_garbage_seldom() -> None:
    """Let Python look for garbage less often, and no more among what is there by now.

    Tracing makes a great many objects that all stay; by default Python goes through them over and over, which takes a
    seventh of the time before the first step.
    """
    gc.freeze()
    gc.set_threshold(100_000)


@contextmanager
def no_compilation_cache() -> Iterator[None]:
    """Compile for real within this block, to measure what compiling takes."""
    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX remembers whether the cache is on
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def tune_malloc() -> bool:
    """Stop the C library from handing large blocks back to the kernel, and say whether it listened.

    By default, glibc maps every large temporary array anew and gives it back when it is freed, so that each use
    of it faults its pages in again. Only glibc has these settings; elsewhere nothing happens.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8
    settings = {trim_threshold: 2**31 - 1, top_pad: 2**26, mmap_max: 0, arena_max: 1}
    mallopt = ctypes.CDLL(None).mallopt
    accepted = [mallopt(name, value) == 1 for name, value in settings.items()]
    return all(accepted)
