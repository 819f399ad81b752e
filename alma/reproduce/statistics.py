"""Statistics of results: bootstrap intervals over seeds and episodes, and comparisons of methods."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

RESAMPLES = 50_000
"""Number of bootstrap resamples; enough for intervals of success rates to be reproducible to a thousandth."""
BATCH = 500
"""Resamples computed at a time, to limit memory."""
LEVEL = 0.95
"""Confidence level of intervals."""


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval, which is None for a single seed."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.low:.3f} - {self.high:.3f})"


def interquartile_mean(scores: Float[np.ndarray, "... N"]) -> Float[np.ndarray, "..."]:
    """The mean of the scores between the 25th and the 75th percentile.

    If a quarter is not a whole number of scores, scores at the edges count in part, so that the result depends
    continuously on the scores; of two or three scores it lies between mean and median.
    """
    ordered = np.sort(scores, axis=-1)
    count = ordered.shape[-1]
    edges = np.arange(count + 1)
    inside = np.minimum(edges[1:], 0.75 * count) - np.maximum(edges[:-1], 0.25 * count)
    weights = np.maximum(inside, 0)
    return np.asarray(ordered @ (weights / weights.sum()))


def improvement(ours: Float[np.ndarray, "... S"], theirs: Float[np.ndarray, "... T"]) -> Float[np.ndarray, "..."]:
    """The fraction of all combinations of one of ours with one of theirs in which ours is higher; a tie counts half."""
    a, b = ours[..., :, None], theirs[..., None, :]
    return np.asarray(np.mean((a > b) + 0.5 * (a == b), axis=(-2, -1)))


def mean(scores: Float[np.ndarray, "N"]) -> Estimate:
    """The mean over seeds, with its interval."""
    return _estimate(lambda seeds: scores[seeds].mean(axis=-1), len(scores))


def final_score(successes: Bool[np.ndarray, "S E"]) -> Estimate:
    """The interquartile mean over seeds of success rates. Rows are seeds, columns the episodes that they all played."""
    return _estimate(lambda seeds, episodes: interquartile_mean(_rates(successes, seeds, episodes)), *successes.shape)


def probability_of_improvement(ours: Bool[np.ndarray, "S E"], theirs: Bool[np.ndarray, "T E"]) -> Estimate:
    """The probability that a random run of ours has a higher success rate than one of theirs; a tie counts half."""

    def share(
        seeds: Int[np.ndarray, "... S"], their_seeds: Int[np.ndarray, "... T"], episodes: Int[np.ndarray, "... E"]
    ) -> Float[np.ndarray, "..."]:
        return improvement(_rates(ours, seeds, episodes), _rates(theirs, their_seeds, episodes))

    return _estimate(share, len(ours), *theirs.shape)


def _rates(
    successes: Bool[np.ndarray, "S E"], seeds: Int[np.ndarray, "... A"], episodes: Int[np.ndarray, "... B"]
) -> Float[np.ndarray, "... A"]:
    """Success rates of resampled seeds in resampled episodes."""
    rates = np.stack([run[episodes].mean(axis=-1) for run in successes], axis=-1)
    return np.take_along_axis(rates, seeds, axis=-1)


def _estimate(statistic: Callable[..., np.ndarray], *sizes: int) -> Estimate:
    """A statistic of the indices of seeds and episodes, with its percentile bootstrap interval.

    `sizes` are the numbers of seeds and episodes; each is resampled independently. Resampling seeds alone would ignore
    the randomness of the episodes, which all seeds share. For the same reason, a resample of episodes is used for all
    runs.
    """
    members = tuple(np.arange(size) for size in sizes)
    value = float(statistic(*members))
    if min(sizes) < 2:
        return Estimate(value)
    # The plain percentile method: the corrected ones are undefined where all seeds agree.
    found = scipy.stats.bootstrap(
        members,
        lambda *drawn, axis: statistic(*drawn),  # `axis` is always the last one
        vectorized=True,
        batch=BATCH,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    low, high = sorted((float(found.low), float(found.high)))  # rounding may swap them if all seeds agree
    return Estimate(value, low, high)
