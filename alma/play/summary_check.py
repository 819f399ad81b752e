"""Summaries of episodes from files: what can be recomputed must agree, so that most changed numbers are noticed."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Whether a value from a file is a number that fits into a float."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, float)


def check_numbers(data: Mapping[str, Any], *names: str, whole: tuple[str, ...] = ()) -> None:
    """Raise a ValueError unless the data have these names, with numbers that are finite and at least 0."""
    for name in (*whole, *names):
        value, kinds = data.get(name), int if name in whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 2**63:
            raise ValueError(f"{name} must be a {'whole ' if name in whole else ''}number of 0 or more")


def check_summary(summary: Mapping[str, Any]) -> None:
    """Raise a ValueError unless `Results.summary` makes such a summary: whatever can be recomputed must agree."""
    check_numbers(summary, "mean_length", "switches_per_step", "unattended_subtasks")
    for name, value in summary.items():
        if name.startswith("mean_") and not is_number(value):
            raise ValueError(f"{name} must be a number")
    if not math.isfinite(summary.get("mean_return", math.nan)):
        raise ValueError("mean_return must be a finite number")
    sizes = summary.get("by_team_size")
    if not isinstance(sizes, Mapping) or not all(isinstance(rate, Mapping) for rate in sizes.values()):
        raise ValueError("by_team_size must be a table of success rates")
    solved = [_solved(rate) for rate in (summary, *sizes.values())]
    played = [rate["episodes"] for rate in (summary, *sizes.values())]
    if sum(solved[1:]) != solved[0] or sum(played[1:]) != played[0]:
        raise ValueError("episodes by_team_size do not add up to those of all sizes")


def _solved(rate: Mapping[str, Any]) -> int:
    """The number of episodes that were solved. Raises a ValueError if the rate or the interval say something else."""
    check_numbers(rate, "success_rate", whole=("episodes",))
    episodes, share = rate["episodes"], rate["success_rate"]
    solved = round(share * episodes)
    interval = rate.get("interval")
    if not 1 <= episodes < 2**31 or abs(solved - share * episodes) > 1e-6 or not solved <= episodes:
        raise ValueError(f"success_rate {share} cannot be that of {episodes} episodes")
    if not isinstance(interval, list) or not _close(interval, _wilson(solved, episodes)):
        raise ValueError(f"interval is not that of {solved} of {episodes} episodes")
    return solved


def _close(given: list[Any], expected: tuple[float, float]) -> bool:
    numbers = [value for value in given if is_number(value)]
    return len(numbers) == len(given) == 2 and np.allclose(np.asarray(numbers, float), expected, rtol=0, atol=1e-6)


def _wilson(solved: int, episodes: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a success rate."""
    z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
    middle = solved + z**2 / 2
    margin = z * math.sqrt(solved * (episodes - solved) / episodes + z**2 / 4)
    return (middle - margin) / (episodes + z**2), (middle + margin) / (episodes + z**2)
