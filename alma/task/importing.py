"""Importing the user's own tasks and methods, named as `module:NAME`."""

import difflib
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from alma.task.own_code import told


def import_by_name(what: str, name: str) -> Any:
    """Import the object named `module:NAME`; `what` says in error messages what kind of object was expected."""
    module, _, attribute = name.partition(":")
    try:
        found = _import_module(module)
        if not hasattr(found, attribute):
            raise ValueError(_what_is_there(found, attribute))
    except ValueError as error:
        raise ValueError(f"cannot import the {what} {name!r}: {error}") from error.__cause__
    return getattr(found, attribute)


def _import_module(name: str) -> ModuleType:
    if name.endswith(".py") or "/" in name or "\\" in name:
        dotted = name.removesuffix(".py").replace("\\", "/").strip("./").replace("/", ".")
        raise ValueError(f"write the module as Python imports it from this folder: {dotted}")
    sys.path.insert(0, "")  # modules in the working directory are found, as by `python -m`
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise ValueError(
                f"there is no module {error.name!r} in {Path.cwd()}, nor where PYTHONPATH points: change to its folder"
            ) from None
        raise ValueError(told(error)) from error
    except Exception as error:
        raise ValueError(told(error)) from error
    finally:
        sys.path.pop(0)


def _what_is_there(module: ModuleType, attribute: str) -> str:
    """Why a name is not found in a module: it may be misspelt, or the module be another one than was meant."""
    close = difflib.get_close_matches(attribute, [name for name in vars(module) if not name.startswith("_")], n=1)
    file = getattr(module, "__file__", None) or "a part of Python"
    return f"there is no {attribute!r} in {file}" + (f": did you mean {close[0]}?" if close else "")
