"""Importing the user's own tasks and methods, named as `module:NAME`."""

import importlib
import sys
from typing import Any


def import_by_name(what: str, name: str) -> Any:
    """Import the object named `module:NAME`; `what` says in error messages what kind of object was expected."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # modules in the working directory are found, as by `python -m`
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot import the {what} {name!r}: {error}") from None
    finally:
        sys.path.pop(0)
