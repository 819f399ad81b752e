"""Names of simulators, by which worker processes import them: `module:Class`."""

import sys
from pathlib import Path


def name_of(kind: type) -> str:
    """The name of a class: `module:Class`."""
    module = kind.__module__
    if module == "__main__":
        program = getattr(sys.modules["__main__"], "__file__", None)
        if program is None:
            raise ValueError(f"worker processes cannot find {kind.__qualname__}: put it in a module, and import it")
        module = Path(program).stem  # its folder is on the path of modules
    return f"{module}:{kind.__qualname__}"
