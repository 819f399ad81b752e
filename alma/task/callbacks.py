"""Python code that compiled programs call: how its errors come out of them."""

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
    """Remember errors of a function that compiled programs call."""

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except BaseException as error:
            _raised[:] = [error]
            raise

    return call


def raises_plainly(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors of Python code out of the compiled programs that a function runs, as they were raised.

    JAX raises an error of its own, with the text of a long traceback.
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
