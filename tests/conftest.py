"""Every test runs with the array shapes and dtypes of all signatures checked."""

import os

from jaxtyping import install_import_hook

# Tests spend their time compiling, not running; must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
install_import_hook("alma", "shapes.check")
