import json

import numpy as np
import pytest
from helpers.recordings import LENGTH, RUNNER_UP, TAKEN, Digging, recording, side

from alma.viewer.page_data import column, columns, distinct, episode_data, page_data, rounded


@pytest.fixture(scope="module")
def episode():
    return episode_data(Digging(), recording())


def test_columns_end_where_nothing_changes_any_more():
    assert column([1, 2, 2, 3, 3, 3]) == [1, 2, 2, 3]
    assert column(["a", "a"]) == ["a"]
    assert columns(np.array([[1, 5], [2, 5], [2, 5]])) == [[1, 2], [5]]


def test_numbers_are_short():
    assert rounded([1.0, 0.12345, -2.0004]) == [1, 0.123, -2]
    assert json.dumps(rounded(np.float32(0.1))) == "0.1"


def test_proposals_are_told_once_the_best_first():
    allocations = np.array([[0, 1], [1, 1], [0, 1], [0, 0], [1, 1]])
    different, values, counts = distinct(allocations, np.array([3.0, 2.0, 3.0, 2.5, 2.0]))
    assert different.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert values.tolist() == [3, 2.5, 2]
    assert counts.tolist() == [1, 1, 2], "what was taken is not counted as a proposal of its own"


def test_decisions_are_told_with_what_was_considered(episode):
    first = episode["decisions"][0]
    assert first["options"][:2] == [TAKEN[0], RUNNER_UP]
    assert first["values"] == [3.5, 3.25, 1]
    assert first["counts"] == [1, 2, 1]


def test_ratings_are_told_of_available_actions(episode):
    """Action, value and target, again and again."""
    assert episode["ratings"][1][0] == [0, -1.25, -1, 2, 2.5, 4]
    assert len(episode["ratings"][1]) == LENGTH
    assert episode["sees"][1] == ["01001"]


def test_markers_are_told_through_all_moments(episode):
    digger = episode["scene"]["markers"][2]
    assert digger["x"][:3] == [1, 1.25, 1.5]
    assert len(digger["x"]) == 8, "it does not move any more when it is dead"
    assert episode["scene"]["standing"][0][8] == "dug"


@pytest.mark.parametrize(
    ("learned", "note"), [(True, ""), (False, "decisions show what was allocated, not what was considered")]
)
def test_a_missing_critic_is_told(learned, note):
    told = page_data(Digging(), [side(learned=learned)], seed=3)["sides"][0]
    assert note in told["note"]
    assert bool(told["note"]) == (not learned)
    assert ("options" in told["episodes"][0]["decisions"][0]) == learned


def test_a_task_without_a_scene_is_told_without(episode):
    told = episode_data(Digging(drawn=False), recording())
    assert told["scene"] is None
    assert {**told, "scene": 0} == {**episode, "scene": 0}
