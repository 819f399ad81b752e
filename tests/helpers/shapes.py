"""The checker that tests run the package under."""

from collections.abc import Callable

from beartype import BeartypeConf, beartype

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int will do for a float


def check(function: Callable) -> Callable:
    """Check arguments and results, but let trees be rebuilt with other leaves, as JAX does all the time."""
    return function if function.__name__ == "__init__" else _check(function)
