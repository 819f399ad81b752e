"""Checks the array shapes and dtypes of all signatures of the package while tests run."""

import gc
import os

import helpers.shapes  # noqa: F401  # named below
import pytest
from jaxtyping import install_import_hook

# Tests spend their time compiling, not running; must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
install_import_hook("alma", "helpers.shapes.check")


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Drop compiled programs after each test file: the next one does not need them.

    Each takes dozens of memory maps, of which Linux gives a process 65,530; beyond that the compiler aborts.
    """
    import jax

    yield
    jax.clear_caches()
    gc.collect()
