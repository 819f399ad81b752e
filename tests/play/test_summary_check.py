"""Summaries from files: what can be recomputed must agree."""

import numpy as np
import pytest

from alma.play.summary import Results
from alma.play.summary_check import check_summary


def summary(success=(True, False, True, True), sizes=(2, 2, 3, 3)):
    """Of episodes that were really summarised."""
    zeros, nines = np.zeros(len(success)), np.full(len(success), 9)
    return Results(np.array(success), zeros - 1, nines, np.array(sizes), zeros, zeros, {"deaths": zeros}).summary()


def test_results_print_in_a_line():
    zeros, nines = np.zeros(4), np.full(4, 9)
    results = Results(np.array([True, False, True, True]), zeros - 1, nines, nines, zeros, zeros, {})
    assert repr(results) == "Results(4 episodes, success rate 0.750, mean return -1.00)"


@pytest.mark.parametrize("success", [(True, False, True, True), (False,) * 4, (True,) * 4])
def test_what_is_summarised_is_accepted(success):
    check_summary(summary(success))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"success_rate": 0.85}, "success_rate 0.85 cannot be that of 4 episodes"),
        ({"success_rate": 0.5}, "interval is not that of 2 of 4 episodes"),
        ({"success_rate": 1.25}, "cannot be that of 4 episodes"),
        ({"success_rate": "0.75"}, "success_rate must be a number"),
        ({"episodes": 8}, "interval is not that of 6 of 8"),
        ({"episodes": 0}, "cannot be that of 0"),
        ({"episodes": True}, "episodes must be a whole number"),
        ({"interval": [0.1, 0.2]}, "interval is not"),
        ({"interval": None}, "interval is not"),
        ({"interval": [0.3, "0.95"]}, "interval is not"),
        ({"mean_return": float("nan")}, "mean_return must be a finite number"),
        ({"mean_return": None}, "mean_return must be a number"),
        ({"mean_deaths": "none"}, "mean_deaths must be a number"),
        ({"mean_length": -1.0}, "mean_length must be a number of 0 or more"),
        ({"by_team_size": {}}, "do not add up"),
        ({"by_team_size": {"2": 0.5}}, "must be a table of success rates"),
        ({"by_team_size": {"2": summary()["by_team_size"]["2"]}}, "do not add up"),
    ],
)
def test_what_contradicts_itself_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        check_summary({**summary(), **change})
