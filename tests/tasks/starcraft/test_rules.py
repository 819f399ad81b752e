"""Which games there can be."""

import numpy as np
import pytest

from alma.tasks.starcraft.rules import Rules


def test_the_papers_teams():
    sz, mmm = Rules(units="sz"), Rules(units="mmm")
    assert len(sz.teams) == 39
    assert len(mmm.teams) == 66
    assert (sz.teams.sum(axis=1).min(), sz.teams.sum(axis=1).max()) == (3, 8)
    fighters, medivacs = mmm.teams[:, :2].sum(axis=1), mmm.teams[:, 2]
    assert (fighters.min(), fighters.max(), medivacs.min(), medivacs.max()) == (3, 6, 0, 2)
    for rules in (sz, mmm):
        assert len(np.unique(rules.teams, axis=0)) == len(rules.teams)


@pytest.mark.parametrize("units", ["sz", "mmm"])
def test_the_enemy_has_the_same_or_one_fighter_more(units):
    np.testing.assert_array_equal(Rules(units=units).enemy_teams, Rules(units=units).teams)
    rules = Rules(units=units, balance="disadvantage")
    more = rules.enemy_teams - rules.teams
    assert (more.sum(axis=1) == 1).all()
    assert (more[:, :2].sum(axis=0) > 0).all(), "now one, now the other"
    if units == "mmm":
        assert (more[:, 2] == 0).all()
    np.testing.assert_array_equal(rules.enemy_teams, Rules(units=units, balance="disadvantage").enemy_teams)
    assert (rules.max_agents, rules.max_enemies) == (8, 9)


@pytest.mark.parametrize(
    ("units", "balance", "reward"),
    [("sz", "symmetric", 1550), ("sz", "disadvantage", 1720), ("mmm", "symmetric", 930), ("mmm", "disadvantage", 985)],
)
def test_reward_scales(units, balance, reward):
    assert Rules(units=units, balance=balance).reward_scale == pytest.approx(20 / reward)


def test_pools_of_ones_own():
    rules = Rules(units="marine+zergling", fighters=(2, 3))
    assert rules.types == ("marine", "zergling")
    assert len(rules.teams) == 3 + 4
    assert rules.reward_scale == pytest.approx(20 / (3 * 55 + 200))
    assert Rules(units="marine+medivac", fighters=4, medivacs=(1, 1)).teams.tolist() == [[4, 1]]
    assert Rules(units="marine+medivac", fighters=4, medivacs=1, dwell=7).teams.tolist() == [[4, 1]]
    assert Rules(dwell=7).dwell_range == (7, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": "dragoon"}, "units must be sz, mmm, or different types"),
        ({"units": "marine+marine"}, "different types"),
        ({"units": "medivac"}, "one that fights"),
        ({"balance": "fair"}, "symmetric or disadvantage"),
        ({"fighters": (5, 3)}, "fighters must be whole numbers"),
        ({"fighters": 13}, "12 at most"),
        ({"fighters": 1}, "2 enemies at least"),
        ({"spread": 1.5}, "spread must lie between 0 and 1"),
        ({"one_spread": -0.1}, "one_spread must lie between 0 and 1, not -0.1"),
        ({"one_spread": (0.0, 1.0)}, "one_spread must lie between 0 and 1, not"),
        ({"sight": 0}, "sight must be a positive number"),
        ({"army_distance": 20.0}, "must fit on the map"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"dwell": (5, 2)}, "dwell must be whole numbers"),
    ],
)
def test_games_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        Rules(**options)
