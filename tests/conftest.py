"""Every test runs with the array shapes and dtypes of all signatures checked."""

import sys
from pathlib import Path

from jaxtyping import install_import_hook

sys.path.insert(0, str(Path(__file__).parent))
install_import_hook("alma", "shapes.check")
