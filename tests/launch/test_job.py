"""A run to train: when its folder holds the same run, and how long it takes."""

from contextlib import nullcontext

import pytest
from helpers.example import FIGURE

from alma.launch.estimate import clock
from alma.launch.job import Job, Resources, time_for
from alma.learning.schedules import Linear
from alma.reproduce.figures import SAVE_THE_CITY, Arm
from alma.reproduce.running import Budget, plan
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder


@pytest.mark.parametrize(
    ("method", "path", "value", "matters"),
    [
        ("alma", "allocator.gamma", 0.5, True),
        ("heuristic", "allocator.gamma", 0.5, False),
        ("flat", "allocator.gamma", 0.5, False),
        ("flat", "exploration.subtask", Linear(1.0, 0.0, 7), False),
        ("flat", "exploration.action", Linear(1.0, 0.0, 7), True),
        ("flat", "allocator.period", 3, True),
        ("flat", "allocator.play_period", 3, True),
        ("alma", "report.episodes", 7, False),
    ],
)
def test_options_that_a_method_has_no_use_for_make_no_other_run(tmp_path, method, path, value, matters):
    """Who follows a rule learns the same, whatever the options of an allocator that learns."""
    usual, other = (Arm(SAVE_THE_CITY, method, method, changes).config("tiny", 0) for changes in ({}, {path: value}))
    run = Job(RunFolder(tmp_path), usual)
    run.folder.create(other)
    (run.folder.checkpoints / "000000000256.ckpt").touch()
    with pytest.raises(ValueError, match="other options") if matters else nullcontext():
        run.check()


def test_of_many_differences_some_are_named(tmp_path):
    usual, other = (RunConfig("save-the-city", preset=name) for name in ("tiny", "fast"))
    run = Job(RunFolder(tmp_path), usual)
    run.folder.create(other)
    (run.folder.checkpoints / "000000000256.ckpt").touch()
    with pytest.raises(ValueError, match=r"actors.batch was 512 and is 32; .*; .*; and \d+ more\): choose another"):
        run.check()


def test_a_run_that_came_to_nothing_gives_way_to_one_with_other_options(tmp_path):
    usual, other = (Arm(SAVE_THE_CITY, "alma", "alma", {"actors.batch": size}).config("tiny", 0) for size in (16, 32))
    run = Job(RunFolder(tmp_path), usual)
    run.folder.create(usual)
    assert run.state == "begun"
    run.folder.create(other)
    assert run.state == "new"
    run.check()


def test_time_is_told_in_hours_and_minutes():
    assert [clock(minutes) for minutes in (0.2, 59, 61, 600)] == ["0 min", "59 min", "1 h 01 min", "10 h 00 min"]


def test_what_is_left_is_estimated_by_what_a_method_costs(tmp_path):
    def minutes(method):
        return Job(RunFolder(tmp_path / method), RunConfig("save-the-city", method=method)).minutes

    assert minutes("heuristic") < minutes("alma") < minutes("copa")


def test_two_jobs_take_less_time_than_one_but_more_than_half(tmp_path):
    runs = plan([FIGURE], Budget("tiny", steps=2048), tmp_path)
    assert time_for(runs, 1) / 2 < time_for(runs, 2) < time_for(runs, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cores": 0}, "a run needs at least 1 core, not 0"),
        ({"cores": 1, "memory": 0.0}, "memory must be positive, in GB, not 0"),
        ({"cores": 1, "gpus": -1}, "gpus must be 0 or more, not -1"),
    ],
)
def test_a_run_needs_something(arguments, message):
    with pytest.raises(ValueError, match=message):
        Resources(**arguments)
