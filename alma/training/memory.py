"""Whether a program fits into memory."""

from pathlib import Path
from typing import Any

import jax

MEMORY = Path("/proc/meminfo")


def bytes_needed(compiled: Any, state: Any) -> int:
    """Memory of a compiled program that changes its state in place: the state, and what XLA needs besides."""
    held = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    return held + compiled.memory_analysis().temp_size_in_bytes


def free_bytes() -> int | None:
    """Free memory of the first device, or of the machine if that is a processor; None where the system does not
    tell.
    """
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None
    if not MEMORY.exists():
        return None
    lines = dict(line.split(":") for line in MEMORY.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def check_fits(needed: int, free: int | None, what: str) -> None:
    """Raise a ValueError if more memory is needed than is free."""
    if free is not None and needed > free:
        raise ValueError(
            f"{what} need {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free: train fewer --seeds at a time, or "
            "leave out --together"
        )
