"""The type checker that checks all signatures of the package in tests."""

from collections.abc import Callable

from beartype import BeartypeConf, beartype

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int will do for a float


def check(function: Callable) -> Callable:
    """Check arguments and results, except in `__init__`: JAX rebuilds pytrees with leaves of other types."""
    return function if function.__name__ == "__init__" else _check(function)
