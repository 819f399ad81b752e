"""How sure one can be of a result: intervals over seeds, and comparisons of methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

RESAMPLES = 5_000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; the interval is None where a single seed says nothing of others."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.low:.3f} - {self.high:.3f})"


def interquartile_mean(scores: Float[np.ndarray, "... N"], axis: int = -1) -> Float[np.ndarray, "..."]:
    """The mean without the lowest and the highest quarter.

    Quarters that are no whole number of scores are taken in part, so that it changes smoothly with the scores; of
    two or three scores it is something between mean and median.
    """
    ordered = np.moveaxis(np.sort(scores, axis=axis), axis, -1)
    count = ordered.shape[-1]
    edges = np.arange(count + 1)
    inside = np.minimum(edges[1:], 0.75 * count) - np.maximum(edges[:-1], 0.25 * count)
    weights = np.maximum(inside, 0)
    return np.asarray(ordered @ (weights / weights.sum()))


def mean(scores: Float[np.ndarray, "N"]) -> Estimate:
    """The mean over seeds."""
    return _bootstrap(scores, np.mean)


def final_score(scores: Float[np.ndarray, "N"]) -> Estimate:
    """The interquartile mean over seeds."""
    return _bootstrap(scores, interquartile_mean)


def probability_of_improvement(ours: Float[np.ndarray, "N"], theirs: Float[np.ndarray, "M"]) -> Estimate:
    """How likely a run of ours, with any seed, does better than one of theirs; a tie counts half."""

    def statistic(
        ours: Float[np.ndarray, "... N"], theirs: Float[np.ndarray, "... M"], axis: int = -1
    ) -> Float[np.ndarray, "..."]:
        a, b = np.moveaxis(ours, axis, -1)[..., :, None], np.moveaxis(theirs, axis, -1)[..., None, :]
        return np.asarray(np.mean((a > b) + 0.5 * (a == b), axis=(-2, -1)))

    value = float(statistic(ours, theirs))
    if min(len(ours), len(theirs)) < 2:
        return Estimate(value)
    return _interval(value, scipy.stats.bootstrap((ours, theirs), statistic, **_OPTIONS))


def _bootstrap(scores: Float[np.ndarray, "N"], statistic: Callable[..., Any]) -> Estimate:
    value = float(statistic(scores))
    if len(scores) < 2:
        return Estimate(value)
    return _interval(value, scipy.stats.bootstrap((scores,), statistic, **_OPTIONS))


_OPTIONS: dict[str, Any] = {
    "n_resamples": RESAMPLES,
    "confidence_level": LEVEL,
    # The plain percentile method: the corrected ones are undefined where all seeds agree.
    "method": "percentile",
    "vectorized": True,
    "rng": 0,
}


def _interval(value: float, found: Any) -> Estimate:
    interval = found.confidence_interval
    return Estimate(value, float(interval.low), float(interval.high))
