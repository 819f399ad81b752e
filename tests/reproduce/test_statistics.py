"""Statistics against cases worked out by hand, and against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

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
def test_intervals_hold_their_value_and_stay_within_the_scores(scores):
    for estimate in (mean(scores), final_score(scores)):
        assert scores.min() - 1e-9 <= estimate.value <= scores.max() + 1e-9
        if len(scores) > 1:
            assert scores.min() - 1e-9 <= estimate.low <= estimate.high <= scores.max() + 1e-9


def test_a_single_seed_has_no_interval():
    assert mean(np.array([0.4])) == Estimate(0.4)
    assert probability_of_improvement(np.array([0.4]), np.array([0.1, 0.2])) == Estimate(1.0)


def test_improvement_counts_pairs_and_halves_ties():
    found = probability_of_improvement(np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    assert found.value == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert found.low <= found.value <= found.high


def test_bootstrap_intervals_cover_the_truth_about_as_often_as_they_say():
    draws = np.random.default_rng(0).normal(size=(200, 20))
    covered = np.mean([estimate.low <= 0 <= estimate.high for estimate in map(mean, draws)])
    # percentile intervals of 20 draws are a little short: 92 - 93 %; four standard errors of 200 are 7 points
    assert 0.86 <= covered <= 0.99
