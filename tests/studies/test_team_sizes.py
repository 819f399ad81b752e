"""The study of larger teams: the teams it tells apart are those that play, and its table adds up."""

import numpy as np
from team_sizes import Episode, count_types, read, table

import alma
from alma.play.episodes import begin, episode_keys
from alma.reproduce.writing import write_csv


def episode(number, solved, builders):
    return Episode(
        8, "learned actors, learned allocator", number, 1, builders, 7 - builders, solved, 60, 1.0 - solved, 0.1
    )


def test_types_are_those_of_the_episodes_that_are_played():
    task = alma.make("save-the-city", agents=6)
    policy = alma.load("pretrained:save-the-city")
    started = begin(task, policy.team, policy.params, episode_keys(3, 5)).state.agent_type
    counted = count_types(task, 3, 5)
    assert counted.sum(axis=1).tolist() == [6] * 5
    assert np.array_equal(counted[:, 1], (np.asarray(started) == 1).sum(axis=1))


def test_the_table_tells_teams_apart_by_their_rarest_type(tmp_path):
    found = [episode(0, 1, 2), episode(1, 0, 3), episode(2, 1, 0)]
    assert [one.fewest for one in found] == [1 / 8, 1 / 8, 0]
    (row,) = table(found).splitlines()[2:]
    assert row.split(" | ")[2:8] == ["3", "0.667", "0.272", "1.00 of 1", "0.50 of 2", ""]
    write_csv(tmp_path / "episodes.csv", [one._asdict() for one in found])
    assert read(tmp_path / "episodes.csv") == found
    assert read(tmp_path / "other.csv") == []
