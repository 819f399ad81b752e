"""Locating errors in the user's own code: tasks, methods and simulators, which are called from deep inside JAX."""

import os
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import jax

LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)
"""Folders of code that is not the user's own: of this package, of Python and of installed packages."""


def origin(error: BaseException) -> str:
    """File, line and function of the last frame of an error in the user's own code; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename and _is_own(error.filename):
        return f"{_shown(error.filename)}, line {error.lineno}"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    if not own:
        return ""
    last = own[-1]
    where = "" if last.name.startswith("<") else f", in {last.name}"
    return f"{_shown(last.filename)}, line {last.lineno}{where}"


def describe_error(error: BaseException) -> str:
    """An error in one line: where in the user's own code it comes from, its type, and what it says."""
    return ": ".join(filter(None, (origin(error), *_words(error))))


def _words(error: BaseException) -> Iterator[str]:
    if not isinstance(error, ValueError) or not str(error):
        yield type(error).__name__
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    line = next(iter(text.strip().splitlines()), "")
    # What follows the first line is about JAX; what to do about it can be said in less.
    if isinstance(error, jax.errors.TracerArrayConversionError):
        yield f"{line} (write jax.numpy in place of numpy)"
    elif isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError):
        yield f"{line} (no Python decisions on array values: write jnp.where, or jax.lax.cond)"
    else:
        yield line


def _is_own(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = os.path.abspath(file)
    parts = Path(path).parts
    installed = "site-packages" in parts or "dist-packages" in parts
    return not installed and not any(path.startswith(f"{folder}{os.sep}") for folder in LIBRARIES)


def _shown(file: str) -> str:
    """A path as short as it can be from the working directory."""
    path = Path(os.path.abspath(file))
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
