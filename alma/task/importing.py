"""Things of the user's own, named as `module:NAME`."""

import importlib
import sys
from typing import Any


def import_by_name(what: str, name: str) -> Any:
    """Import what `module:NAME` means; complaints say what it was to be."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # a module beside the user is found, as by `python -m`
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot import the {what} {name!r}: {error}") from None
    finally:
        sys.path.pop(0)
