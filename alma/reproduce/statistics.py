"""How sure one can be of a result: intervals over seeds and episodes, and comparisons of methods."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from jaxtyping import Bool, Float

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


def mean(scores: Float[np.ndarray, "N"]) -> Estimate:
    """The mean over seeds, with a percentile bootstrap interval over seeds."""
    value = float(np.mean(scores))
    if len(scores) < 2:
        return Estimate(value)
    # The plain percentile method: the corrected ones are undefined where all seeds agree.
    found = scipy.stats.bootstrap(
        (scores,), np.mean, n_resamples=RESAMPLES, confidence_level=LEVEL, method="percentile", rng=0
    ).confidence_interval
    low, high = sorted((float(found.low), float(found.high)))  # they may be rounded past each other where seeds agree
    return Estimate(value, low, high)


def final_score(successes: Bool[np.ndarray, "S E"]) -> Estimate:
    """The interquartile mean over seeds of success rates, from what every seed made of the same episodes."""
    value = float(interquartile_mean(successes.mean(axis=1)))
    if len(successes) < 2:
        return Estimate(value)
    resampled = Resampling(successes.shape[1])
    return _interval(value, interquartile_mean(resampled.rates(successes)))


def probability_of_improvement(ours: Bool[np.ndarray, "S E"], theirs: Bool[np.ndarray, "T E"]) -> Estimate:
    """How likely a run of ours, with any seed, does better than one of theirs; a tie counts half."""

    def share(ours: Float[np.ndarray, "... S"], theirs: Float[np.ndarray, "... T"]) -> Float[np.ndarray, "..."]:
        a, b = ours[..., :, None], theirs[..., None, :]
        return np.asarray(np.mean((a > b) + 0.5 * (a == b), axis=(-2, -1)))

    value = float(share(ours.mean(axis=1), theirs.mean(axis=1)))
    if min(len(ours), len(theirs)) < 2:
        return Estimate(value)
    resampled = Resampling(ours.shape[1])
    return _interval(value, share(resampled.rates(ours), resampled.rates(theirs)))


class Resampling:
    """A bootstrap over two things at once: seeds, and the episodes that all of them played.

    Drawing seeds alone would take the luck of these episodes for granted: it is the same for all seeds, so it does
    not show in what they differ by. Every set of drawn episodes is therefore used for all runs.
    """

    def __init__(self, episodes: int) -> None:
        self.rng = np.random.default_rng(0)
        self.weights = self.rng.multinomial(episodes, np.full(episodes, 1 / episodes), RESAMPLES) / episodes

    def rates(self, successes: Bool[np.ndarray, "S E"]) -> Float[np.ndarray, "R S"]:
        """Success rates of drawn seeds in drawn episodes, again and again."""
        rates = self.weights @ successes.T.astype(float)
        drawn = self.rng.integers(len(successes), size=rates.shape)
        return np.take_along_axis(rates, drawn, axis=1)


def _interval(value: float, samples: Any) -> Estimate:
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))
