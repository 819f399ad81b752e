import pytest

from alma.tasks.save_the_city.rules import Rules


def test_default_reward_scale():
    assert Rules().reward_scale == 20 / 56


def test_a_number_fixes_the_team_size():
    assert Rules(agents=7).team_sizes == (7, 7)


def test_lists_become_tuples():
    assert Rules(agents=[2, 3]) == Rules(agents=(2, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": 1}, "from 2 to 24"),
        ({"agents": 25}, "from 2 to 24"),
        ({"agents": (5, 2)}, "smallest, largest"),
        ({"agents": (2, 3, 4)}, "smallest, largest"),
        ({"agents": 2.5}, "team size"),
        ({"agents": 5, "grid_size": 6}, "from 2 to 3"),
        ({"grid_size": 15}, "even number"),
        ({"max_steps": 0}, "max_steps"),
        ({"low_health": (0.4, 0.2)}, "low_health"),
        ({"high_health": (0.4, 1.0)}, "high_health"),
        ({"slow_interval": (0, 10)}, "slow_interval"),
        ({"fast_interval": 10}, "must hold 2 numbers"),
        ({"start_on_fire": 1.5}, "chance"),
        ({"fire_growth": 0.9}, "fire_growth"),
        ({"fight_power": -1}, "fight_power"),
        ({"build_speed": (1, 2)}, "must hold 3 numbers"),
        ({"start_on_fire": "lots"}, "finite numbers"),
        ({"help_speed": None}, "finite numbers"),
        ({"health_reward": float("nan")}, "finite numbers"),
        ({"fight_speed": (1, "a", 2)}, "finite numbers"),
        ({"fire_growth": (1, 2)}, "one number"),
        ({"complete_reward": -5.0}, "must not be negative"),
    ],
)
def test_impossible_rules_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Rules(**options)
