"""How sure one can be of a result: intervals over seeds and episodes, and comparisons of methods."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

RESAMPLES = 50_000
"""So many that with others success rates have the same intervals, to a thousandth."""
BATCH = 500
"""Resamples at a time: what bounds memory."""
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


def interquartile_mean(scores: Float[np.ndarray, "... N"]) -> Float[np.ndarray, "..."]:
    """The mean without the lowest and the highest quarter.

    Quarters that are no whole number of scores are taken in part, so that it changes smoothly with the scores; of
    two or three scores it is something between mean and median.
    """
    ordered = np.sort(scores, axis=-1)
    count = ordered.shape[-1]
    edges = np.arange(count + 1)
    inside = np.minimum(edges[1:], 0.75 * count) - np.maximum(edges[:-1], 0.25 * count)
    weights = np.maximum(inside, 0)
    return np.asarray(ordered @ (weights / weights.sum()))


def improvement(ours: Float[np.ndarray, "... S"], theirs: Float[np.ndarray, "... T"]) -> Float[np.ndarray, "..."]:
    """The share of all pairs in which ours is above theirs; a tie counts half."""
    a, b = ours[..., :, None], theirs[..., None, :]
    return np.asarray(np.mean((a > b) + 0.5 * (a == b), axis=(-2, -1)))


def mean(scores: Float[np.ndarray, "N"]) -> Estimate:
    """The mean over seeds, with an interval over seeds."""
    return _estimate(lambda seeds: scores[seeds].mean(axis=-1), len(scores))


def final_score(successes: Bool[np.ndarray, "S E"]) -> Estimate:
    """The interquartile mean over seeds of success rates, from what every seed made of the same episodes."""
    return _estimate(lambda seeds, episodes: interquartile_mean(_rates(successes, seeds, episodes)), *successes.shape)


def probability_of_improvement(ours: Bool[np.ndarray, "S E"], theirs: Bool[np.ndarray, "T E"]) -> Estimate:
    """How likely a run of ours, with any seed, does better than one of theirs; a tie counts half."""

    def share(
        seeds: Int[np.ndarray, "... S"], their_seeds: Int[np.ndarray, "... T"], episodes: Int[np.ndarray, "... E"]
    ) -> Float[np.ndarray, "..."]:
        return improvement(_rates(ours, seeds, episodes), _rates(theirs, their_seeds, episodes))

    return _estimate(share, len(ours), *theirs.shape)


def _rates(
    successes: Bool[np.ndarray, "S E"], seeds: Int[np.ndarray, "... A"], episodes: Int[np.ndarray, "... B"]
) -> Float[np.ndarray, "... A"]:
    """Success rates of drawn seeds in drawn episodes."""
    rates = np.stack([run[episodes].mean(axis=-1) for run in successes], axis=-1)
    return np.take_along_axis(rates, seeds, axis=-1)


def _estimate(statistic: Callable[..., np.ndarray], *sizes: int) -> Estimate:
    """A statistic of all seeds and episodes, by number, with its percentile bootstrap interval.

    There are so many of each, and each is drawn by itself. Drawing seeds alone would take the luck of these episodes
    for granted: it is the same for all seeds, so it does not show in what they differ by. Every draw of episodes is
    therefore used for all runs.
    """
    members = tuple(np.arange(size) for size in sizes)
    value = float(statistic(*members))
    if min(sizes) < 2:
        return Estimate(value)
    # The plain percentile method: the corrected ones are undefined where all seeds agree.
    found = scipy.stats.bootstrap(
        members,
        lambda *drawn, axis: statistic(*drawn),  # which is always the last
        vectorized=True,
        batch=BATCH,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    low, high = sorted((float(found.low), float(found.high)))  # they may be rounded past each other where seeds agree
    return Estimate(value, low, high)
