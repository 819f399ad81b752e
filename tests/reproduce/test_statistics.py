"""Statistics against cases worked out by hand, and against simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

from alma.reproduce import statistics
from alma.reproduce.statistics import Estimate, final_score, interquartile_mean, mean, probability_of_improvement

rates = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


def test_the_interquartile_mean_of_four_is_that_of_the_middle_two():
    assert interquartile_mean(np.array([0.9, 0.1, 0.5, 0.3])) == pytest.approx(0.4)


def test_quarters_of_five_take_the_second_and_fourth_in_part():
    # a quarter of five is 1.25 scores: the second and the fourth count three quarters
    expected = (0.75 * 2 + 3 + 0.75 * 4.5) / 2.5
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, 4.5, 100.0])) == pytest.approx(expected)


@given(rates)
def test_the_interquartile_mean_of_multiples_of_four_is_the_trimmed_mean(scores):
    four_times = np.repeat(scores, 4)
    assert interquartile_mean(four_times) == pytest.approx(trim_mean(four_times, 0.25))


@given(rates)
def test_intervals_of_means_hold_their_value_and_stay_within_the_scores(scores):
    estimate = mean(scores)
    assert scores.min() - 1e-9 <= estimate.value <= scores.max() + 1e-9
    if len(scores) > 1:
        assert scores.min() - 1e-9 <= estimate.low <= estimate.high <= scores.max() + 1e-9


def outcomes(*counts, episodes=100):
    """Seeds that solved so many of the same episodes."""
    return np.arange(episodes) < np.array(counts)[:, None]


def test_a_single_seed_has_no_interval():
    assert mean(np.array([0.4])) == Estimate(0.4)
    assert final_score(outcomes(40)) == Estimate(0.4)
    assert probability_of_improvement(outcomes(40), outcomes(10, 20)) == Estimate(1.0)
    assert probability_of_improvement(outcomes(10, 40), outcomes(20)) == Estimate(0.5)


def test_intervals_are_the_same_every_time():
    scores = np.random.default_rng(0).normal(size=5)
    assert mean(scores) == mean(scores)
    assert final_score(outcomes(10, 25, 40)) == final_score(outcomes(10, 25, 40))


def test_improvement_counts_pairs_and_halves_ties():
    found = probability_of_improvement(outcomes(10, 30), outcomes(10, 20))
    assert found.value == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert found.low <= found.value <= found.high


def test_intervals_know_that_seeds_share_their_episodes():
    """Seeds that agree in every episode are as sure as one binomial sample, not more."""
    found = final_score(outcomes(40, 40, 40, 40, 40))
    assert found.value == pytest.approx(0.4)
    half = 1.96 * np.sqrt(0.4 * 0.6 / 100)
    assert found.low == pytest.approx(0.4 - half, abs=0.015)
    assert found.high == pytest.approx(0.4 + half, abs=0.015)


def test_intervals_are_those_of_all_draws_of_seeds_and_episodes():
    """Two seeds and three episodes: 4 x 27 draws, all of them as likely, gone through one by one."""
    successes = np.array([[True, False, False], [True, True, False]])
    draws = [
        np.mean([np.mean([successes[seed, episode] for episode in episodes]) for seed in seeds])
        for seeds in product(range(2), repeat=2)
        for episodes in product(range(3), repeat=3)
    ]
    found = final_score(successes)  # of two seeds, the interquartile mean is the mean
    assert found.value == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx(np.quantile(draws, [0.025, 0.975], method="nearest"))


def test_improvement_draws_the_seeds_of_both_and_the_episodes_of_all():
    ours, theirs = np.array([[True, True, False], [False, True, False]]), np.array([[True, False, False]] * 2)
    draws = [
        np.mean(
            [
                (ours[a, e].mean() > theirs[b, e].mean()) + 0.5 * (ours[a, e].mean() == theirs[b, e].mean())
                for a in seeds
                for b in other_seeds
            ]
        )
        for seeds in product(range(2), repeat=2)
        for other_seeds in product(range(2), repeat=2)
        for e in map(list, product(range(3), repeat=3))
    ]
    found = probability_of_improvement(ours, theirs)
    assert found.value == pytest.approx(0.75)
    assert (found.low, found.high) == pytest.approx(np.quantile(draws, [0.025, 0.975], method="nearest"))


def test_intervals_know_that_seeds_differ():
    narrow = final_score(outcomes(500, 500, 500, 500, 500, episodes=1000))
    wide = final_score(outcomes(300, 400, 500, 600, 700, episodes=1000))
    assert wide.value == pytest.approx(narrow.value)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_what_is_better_in_the_same_episodes_is_better_whatever_is_drawn():
    found = probability_of_improvement(outcomes(60, 60), outcomes(40, 40))
    assert (found.value, found.low) == (1.0, 1.0)


def test_bootstrap_intervals_cover_the_truth_about_as_often_as_they_say():
    draws = np.random.default_rng(0).normal(size=(200, 20))
    covered = np.mean([estimate.low <= 0 <= estimate.high for estimate in map(mean, draws)])
    # percentile intervals of 20 draws are a little short: 92 - 93 %; four standard errors of 200 are 7 points
    assert 0.86 <= covered <= 0.99


def test_final_scores_cover_the_truth_about_as_often_as_they_say(monkeypatch):
    """Twenty seeds with rates of their own play 50 episodes, some of which are harder than others for all of them."""
    monkeypatch.setattr(statistics, "RESAMPLES", 2000)  # more would only give smoother ends
    rng, covered = np.random.default_rng(0), []
    for _ in range(100):
        hardness, skill = rng.normal(size=50), rng.normal(size=20)
        successes = rng.normal(size=(20, 50)) + skill[:, None] > hardness
        found = final_score(successes)
        covered.append(found.low <= 0.5 <= found.high)
    # four standard errors of 100 are 9 points
    assert np.mean(covered) >= 0.86
