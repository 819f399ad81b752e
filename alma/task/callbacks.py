"""Errors of Python code that compiled programs call: kept where they are raised, and raised again outside."""

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")

_raised: list[BaseException] = []
"""The last error of code called by a compiled program, until it has been raised again."""


def called_back(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator for a function that compiled programs call: its errors are kept for `raises_plainly`."""

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except BaseException as error:
            _raised[:] = [error]
            raise

    return call


def raises_plainly(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: errors of Python code that compiled programs call are raised as they were.

    JAX would raise an error of its own in their place, with the text of a long traceback.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except jax.errors.JaxRuntimeError:
            if not _raised:
                raise
            raise _raised.pop() from None

    return call


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a message of JAX is about anything but an error that will be raised again."""
    return record.exc_info is None or record.exc_info[1] not in _raised


logging.getLogger("jax._src.callback").addFilter(_is_news)
