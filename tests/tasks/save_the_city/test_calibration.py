"""Scripted play solves the city as often as it is known to: the dynamics as a whole, in one number each."""

import pytest

import alma
from alma.allocators.rules import allocator_by_name
from alma.play.episodes import play_episodes
from alma.play.scripts import scripted_actors
from alma.play.team import NOTHING_LEARNED, Team

EPISODES = 2048


@pytest.mark.parametrize(
    ("allocation", "solved"), [("heuristic", 0.405), ("random", 0.021), ("heuristic:most-urgent", 0.118)]
)
def test_success_rates(allocation, solved):
    task = alma.make("save-the-city")
    team = Team(scripted_actors(task, "scripted"), allocator_by_name(task, allocation), play_period=5)
    summary = play_episodes(task, team, NOTHING_LEARNED, EPISODES, seed=1, parallel=1024).summary()
    standard_error = (solved * (1 - solved) / EPISODES) ** 0.5
    assert abs(summary["success_rate"] - solved) < 4 * standard_error
