"""Runs are carried out once, go on where they stopped, and none is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.example import FIGURE
from rich.console import Console

from alma.learning.schedules import Linear
from alma.reproduce import running
from alma.reproduce.figures import FIGURES, SAVE_THE_CITY, Arm, find_figures
from alma.reproduce.running import Budget, PlannedRun, clock, plan, share_out_cores, time_for, train_all
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.signals import Interrupted

BUDGET = Budget("tiny", steps=2048)


@pytest.fixture
def quiet():
    return Console(stderr=True, force_terminal=False)


def pretend(monkeypatch, script="import pathlib; pathlib.Path('result.json').write_text('{}')"):
    """Runs that do nothing but finish, in processes of their own; the answer is the list of those begun."""
    begun = []

    def launch(run, cores):
        begun.append(run.name)
        if run.state == "new":
            run.folder.create(run.config)
        running._log(run).write_text("the reason\n")
        return running.Worker(subprocess.Popen([sys.executable, "-c", script], cwd=run.folder.path), cores)

    monkeypatch.setattr(running, "launch", launch)
    monkeypatch.setattr(running, "POLL_SECONDS", 0.02)
    return begun


def test_a_plan_has_every_run_once_and_first_seeds_first(tmp_path):
    runs = plan([FIGURE, FIGURE], BUDGET, tmp_path)
    assert [run.name for run in runs] == [
        "doors_alma_allocator.proposals=4_tiny_0",
        "doors_heuristic-owner_tiny_0",
        "doors_alma_allocator.proposals=4_tiny_1",
        "doors_heuristic-owner_tiny_1",
    ]
    assert {run.state for run in runs} == {"new"}
    assert {run.config.options.steps for run in runs} == {2048}


@pytest.mark.parametrize(
    ("seeds", "pairs"), [(None, [(0, 1), (1, 0)]), ((1, 5, 7), [(1, 5), (5, 7), (7, 1)]), ((3,), [])]
)
def test_the_allocator_of_another_seed_is_that_of_the_next(seeds, pairs):
    case, budget = FIGURE.cases[2], Budget("tiny", seeds)
    assert budget.points_of(FIGURE, case) == [(seed, seed) for seed in budget.seeds_of(FIGURE, case.arm)]
    assert budget.points_of(FIGURE, replace(case, other_seed=True)) == pairs


def test_finished_runs_are_skipped(tmp_path, monkeypatch, quiet):
    begun = pretend(monkeypatch)
    train_all(plan([FIGURE], Budget("tiny", seeds=(0,)), tmp_path), 2, quiet)
    assert len(begun) == 2
    train_all(plan([FIGURE], Budget("tiny"), tmp_path), 1, quiet)
    assert sorted(name[-1] for name in begun) == ["0", "0", "1", "1"]


def test_a_run_that_was_begun_goes_on(tmp_path, monkeypatch, quiet):
    begun = pretend(monkeypatch)
    runs = plan([FIGURE], BUDGET, tmp_path)
    runs[1].folder.create(runs[1].config)
    runs[1].folder.metrics.write_text('{"step": 1024}\n{"st')  # cut short
    assert (runs[1].state, runs[1].step) == ("begun", 1024)
    assert 0 < runs[1].minutes < runs[3].minutes
    train_all(runs, 1, quiet)
    assert len(begun) == 4
    assert runs[1].folder.metrics.exists()  # not started over


def test_another_run_in_the_folder_is_left_alone(tmp_path, quiet):
    runs = plan([FIGURE], BUDGET, tmp_path)
    runs[0].folder.create(runs[0].config)
    longer = plan([FIGURE], Budget("tiny", steps=4096), tmp_path)
    with pytest.raises(ValueError, match="holds a run with other options: choose another --out"):
        train_all(longer, 1, quiet)


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
    run = PlannedRun(RunFolder(tmp_path), usual)
    run.folder.create(other)
    with pytest.raises(ValueError, match="other options") if matters else nullcontext():
        run.check()


def test_published_runs_are_those_that_figures_ask_for():
    results = Path(__file__).parents[2] / "results"
    runs = plan(FIGURES.values(), Budget(), results)
    published = [run for run in runs if run.state == "published"]
    assert published
    for run in published:
        run.check()


def test_a_failure_is_told_after_the_others_have_run(tmp_path, monkeypatch, quiet):
    begun = pretend(monkeypatch, "raise SystemExit(1)")
    failed = train_all(plan([FIGURE], BUDGET, tmp_path), 2, quiet)
    assert len(begun) == len(failed) == 4
    assert any(words.startswith("doors_heuristic-owner_tiny_1: the reason (see ") for words in failed)


def test_no_run_is_left_alone_when_something_goes_wrong(tmp_path, monkeypatch, quiet):
    pretend(monkeypatch, "import time; time.sleep(60)")
    processes, launch = [], running.launch

    def remember(run, cores):
        worker = launch(run, cores)
        processes.append(worker.process)
        return worker

    monkeypatch.setattr(running, "launch", remember)
    runs = plan([FIGURE], BUDGET, tmp_path)

    def trip(overview, working):
        raise ValueError("unexpected")

    monkeypatch.setattr(running.Overview, "show", trip)
    with pytest.raises(ValueError, match="unexpected"):
        train_all(runs, 2, quiet)
    assert [process.poll() is not None for process in processes] == [True, True]


@pytest.mark.parametrize(
    ("cores", "jobs", "shares"),
    [
        ({0, 1}, 1, [{0, 1}]),
        ({0, 1}, 2, [{0}, {1}]),
        ({2, 5, 7}, 2, [{2}, {5}]),
        ({0, 1}, 3, [{0, 1}, {0, 1}, {0, 1}]),
    ],
)
def test_every_job_has_cores_of_its_own_where_there_are_enough(monkeypatch, cores, jobs, shares):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores, raising=False)
    assert share_out_cores(jobs) == shares


def test_where_cores_are_not_told_none_are_named(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert share_out_cores(2) == [frozenset(), frozenset()]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no cores to choose from")
def test_a_run_keeps_to_its_cores(tmp_path):
    one = frozenset([min(os.sched_getaffinity(0))])
    worker = running.launch(plan([FIGURE], BUDGET, tmp_path)[0], one)
    try:
        assert os.sched_getaffinity(worker.process.pid) == one
    finally:
        worker.process.kill()
        worker.process.wait()


def test_cores_are_given_to_the_next_run(tmp_path, monkeypatch, quiet):
    given = []
    pretend(monkeypatch)
    monkeypatch.setattr(running, "share_out_cores", lambda jobs: [frozenset([7])])
    launch = running.launch
    monkeypatch.setattr(running, "launch", lambda run, cores: given.append(cores) or launch(run, cores))
    train_all(plan([FIGURE], BUDGET, tmp_path), 1, quiet)
    assert given == [frozenset([7])] * 4


def test_asked_to_stop_it_tells_its_runs(tmp_path, monkeypatch, quiet):
    begun = pretend(monkeypatch, "import time; time.sleep(60)")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    before = time.monotonic()
    with pytest.raises(Interrupted, match="the same command goes on from here"):
        train_all(plan([FIGURE], BUDGET, tmp_path), 2, quiet)
    assert len(begun) == 2
    assert time.monotonic() - before < 30


def test_there_must_be_a_job(quiet):
    with pytest.raises(ValueError, match="jobs must be at least 1, not 0"):
        train_all([], 0, quiet)


def test_time_is_told_in_hours_and_minutes():
    assert [clock(minutes) for minutes in (0.2, 59, 61, 600)] == ["0 min", "59 min", "1 h 01 min", "10 h 00 min"]


def test_what_is_left_is_estimated_by_what_a_method_costs(tmp_path):
    def minutes(method):
        return PlannedRun(RunFolder(tmp_path / method), RunConfig("save-the-city", method=method)).minutes

    assert minutes("heuristic") < minutes("alma") < minutes("copa")


def test_two_jobs_take_less_time_than_one_but_more_than_half(tmp_path):
    runs = plan([FIGURE], BUDGET, tmp_path)
    assert time_for(runs, 1) / 2 < time_for(runs, 2) < time_for(runs, 1)


def test_seeds_that_are_asked_for_are_run(tmp_path):
    figures = find_figures("save-the-city", ("random",))
    assert len(plan(figures, Budget(), tmp_path)) == 2
    assert len(plan(figures, Budget(seeds=(0, 1, 2, 3)), tmp_path)) == 4


def test_figures_that_are_about_a_preset_refuse_others(tmp_path):
    with pytest.raises(ValueError, match="ablations makes no sense with preset paper: choose fast"):
        plan([FIGURES["ablations"]], Budget("paper"), tmp_path)
