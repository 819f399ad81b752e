"""Importing the user's own tasks and methods, named as `module:NAME`: only what the user has named is imported.

Files are data. A file that names code of somebody's own, such as a run's configuration, is refused when it is read,
unless the user trusts it or has named the same code.
"""

import importlib
import sys
from typing import Any, TypeAlias

Trust: TypeAlias = bool | frozenset[str]
"""Which code that a file names may be imported: all (True), none (False), or these names."""


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
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise ValueError(f"cannot import the {what} {name!r}: write module:NAME, such as package.module:{what.title()}")
    sys.path.insert(0, "")  # modules in the working directory are found, as by `python -m`
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot import the {what} {name!r}: {error}") from None
    finally:
        sys.path.pop(0)
