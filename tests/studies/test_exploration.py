"""The comparison of ways to explore allocations: its runs can be made, and its table says when a level is reached."""

import pytest
from exploration import KINDS, SETTINGS, Trained, config_of, steps_to, table


@pytest.mark.parametrize("setting", SETTINGS)
def test_runs_differ_in_how_they_explore_alone(setting):
    configs = {kind: config_of(SETTINGS[setting], kind, 0) for kind in KINDS}
    assert {config.options.allocator.exploration.kind for config in configs.values()} == set(KINDS)
    assert {config.make_team().allocator.explorer.__class__.__name__ for config in configs.values()} == {
        "EpsilonGreedy",
        "NoisyProposals",
        "ThompsonSampling",
    }


def test_a_level_is_reached_by_the_first_evaluation_at_it():
    curve = [(100, 0.1), (200, 0.8), (300, 0.7), (400, 0.9)]
    assert [steps_to(curve, level) for level in (0.1, 0.75, 0.85, 0.95)] == [100, 200, 400, None]


def test_the_table_has_minutes_at_the_measured_speed():
    slow = [Trained(2_000_000, [(1_000_000, 0.7), (2_000_000, 0.9)], 0.9), Trained(2_000_000, [(1_000_000, 0.2)], 0.7)]
    lines = table({"epsilon": slow, "noise": []}, {"epsilon": 3.0, "noise": 1.0}, 0.8).splitlines()
    assert lines[2:] == ["| epsilon | 2 | 3.00 | 2.00 | 6.0, never | 0.800 | 0.900, 0.700 | 0.141 |"]
