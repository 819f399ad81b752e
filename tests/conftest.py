"""Checks the array shapes and dtypes of all signatures of the package while tests run."""

import gc
import os
from collections import Counter
from importlib import metadata
from pathlib import Path

import helpers.shapes  # noqa: F401  # named below
import pytest
from jaxtyping import install_import_hook

# Tests spend their time compiling, not running. Without the newer emitters of fusions, XLA compiles in less than half
# the time; a program's parts are not worth a thread each. Must be set before JAX is imported.
QUICK_COMPILATION = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
if metadata.version("jaxlib").startswith("0.10."):  # later ones have no older emitters, and abort at an unknown flag
    QUICK_COMPILATION += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", QUICK_COMPILATION)
install_import_hook("alma", "helpers.shapes.check")

from alma.runs import runtime  # noqa: E402

runtime.configure()  # compiled programs are kept from one run of the tests to the next
runtime.use_cpu_devices(2)  # for tests that share something out over devices; the others use the first one


MOST_MAPS = 15_000
"""Memory maps from which compiled programs are dropped. Each program takes dozens, of which Linux gives a process
65,530; beyond that the compiler aborts."""


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Drop compiled programs after a test file if there are many. Most files need the same small ones."""
    import jax

    yield
    if memory_maps() > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


def memory_maps() -> int:
    """Memory maps of this process; more than enough where the system does not tell."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return MOST_MAPS + 1


def pytest_terminal_summary(terminalreporter):
    """Say loudly what was not tested, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("NOT TESTED HERE", sep="!", red=True, bold=True)
    for reason, count in reasons.items():
        terminalreporter.write_line(f"{count} tests skipped: {reason}", yellow=True)
