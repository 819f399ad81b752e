"""Importing the user's own tasks and methods, named as `module:NAME`: only what the user has named is imported.

Files are data. A file that names code of somebody's own, such as a run's configuration, is refused when it is read,
unless the user trusts it or has named the same code.
"""

import difflib
import importlib
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from alma.task.own_code import describe_error

Trust: TypeAlias = bool | frozenset[str]
"""The code that may be imported because a file names it: all (True), none (False), or these names."""


class UntrustedError(ValueError):
    """A file names code that the user has not asked for."""


def check_trusted(what: str, name: str, trust: Trust, source: object) -> None:
    """Raise an UntrustedError if `source`, a file, names a task or method that may not be imported."""
    if trust is True or (isinstance(trust, frozenset) and name in trust):
        return
    raise UntrustedError(
        f"{source} names the {what} {name!r}, and to use it would run that module's code: nothing was imported; "
        "if you know what it does, add --trust (in Python: trust=True)"
    )


def import_by_name(what: str, name: str) -> Any:
    """Import the object named `module:NAME`; `what` says in error messages what kind of object was expected."""
    module, _, attribute = name.partition(":")
    try:
        if not all(part.isidentifier() for part in [*module.split("."), attribute]):
            raise ValueError(_how_to_name(module, what))
        found = _import_module(module)
        if not hasattr(found, attribute):
            raise ValueError(_what_is_there(found, attribute))
    except ValueError as error:
        raise ValueError(f"cannot import the {what} {name!r}: {error}") from error.__cause__
    return getattr(found, attribute)


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, "")  # modules in the working directory are found, as by `python -m`
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise ValueError(
                f"there is no module {error.name!r} in {Path.cwd()}, nor where PYTHONPATH points: change to its folder"
            ) from None
        raise ValueError(describe_error(error)) from error
    except (Exception, SystemExit) as error:  # a module that is meant as a program may end itself
        raise ValueError(describe_error(error)) from error
    finally:
        with suppress(ValueError):  # the module may have changed the path itself
            sys.path.remove("")


def _what_is_there(module: ModuleType, attribute: str) -> str:
    """Why a name is not found in a module: it may be misspelt, or the module be another one than was meant."""
    close = difflib.get_close_matches(attribute, [name for name in vars(module) if not name.startswith("_")], n=1)
    file = getattr(module, "__file__", None) or "a part of Python"
    return f"there is no {attribute!r} in {file}" + (f": did you mean {close[0]}?" if close else "")


def _how_to_name(module: str, what: str) -> str:
    if module.endswith(".py") or "/" in module or "\\" in module:
        file = Path(module.replace("\\", "/").removesuffix(".py"))
        if file.is_absolute() or ".." in file.parts:
            return f"change to the module's folder, and write {file.name}:NAME"
        return f"write the module as Python imports it from this folder: {'.'.join(file.parts)}"
    return f"write module:NAME, such as package.module:{what.title()}"
