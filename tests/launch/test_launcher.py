"""Runs are carried out once, continued where they stopped, started again where they died, and none is lost."""

import io
import json
import os
import signal
import threading
import time

import pytest
from helpers.engine import DIED, FAILED, FINISHED, PretendEngine
from helpers.example import FIGURE
from helpers.summaries import made_up_summary
from rich.console import Console

from alma.launch import launcher, overview
from alma.launch.launcher import MOST_RESTARTS, train_all
from alma.launch.overview import Overview, standing
from alma.reproduce.running import Budget, plan
from alma.runs.signals import Interrupted

BUDGET = Budget("tiny", steps=2048)
ALIVE = "alive"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.01)


@pytest.fixture
def quiet():
    return Console(stderr=True, force_terminal=False)


@pytest.fixture
def runs(tmp_path):
    return plan([FIGURE], BUDGET, tmp_path)


def test_finished_runs_are_skipped(tmp_path, quiet):
    engine = PretendEngine()
    train_all(plan([FIGURE], Budget("tiny", seeds=(0,)), tmp_path), engine, quiet)
    assert len(engine.begun) == 2
    train_all(plan([FIGURE], Budget("tiny"), tmp_path), engine, quiet)
    assert sorted(name[-1] for name in engine.begun) == ["0", "0", "1", "1"]


def test_a_run_that_was_begun_is_continued(runs, quiet):
    runs[1].folder.create(runs[1].config)
    runs[1].folder.metrics.write_text('{"step": 1024, "minutes": 0.5}\n{"st')  # cut short
    assert (runs[1].state, runs[1].step) == ("begun", 1024)
    assert 0 < runs[1].minutes < runs[3].minutes
    engine = PretendEngine()
    train_all(runs, engine, quiet)
    assert len(engine.begun) == 4
    assert runs[1].folder.metrics.exists(), "not started over"


def test_another_run_in_the_folder_is_left_alone(runs, tmp_path, quiet):
    runs[0].folder.create(runs[0].config)
    longer = plan([FIGURE], Budget("tiny", steps=4096), tmp_path)
    with pytest.raises(ValueError, match=r"other options \(options.steps was 2048 and is 4096\): choose"):
        train_all(longer, PretendEngine(), quiet)


def test_a_failure_is_reported_with_its_log_and_stops_no_other_run(runs, quiet, capsys):
    engine = PretendEngine(fates={runs[1].name: [FAILED]})
    failed = train_all(runs, engine, quiet)
    assert failed == [f"{runs[1].name}: the reason (see {runs[1].folder.log})"]
    assert engine.begun == [run.name for run in runs]
    assert [run.done for run in runs] == [True, False, True, True]
    assert "1 failed" in capsys.readouterr().err


def test_a_run_whose_machine_died_is_started_again(runs, quiet, capsys):
    engine = PretendEngine(fates={runs[0].name: [DIED, DIED]})
    assert train_all(runs, engine, quiet) == []
    assert sorted(engine.begun) == sorted([run.name for run in runs] + 2 * [runs[0].name])
    assert f"{runs[0].name}: the node is gone; it is started again" in capsys.readouterr().err


def test_a_run_that_dies_again_and_again_has_failed(runs, quiet):
    engine = PretendEngine(fates={runs[0].name: [DIED] * 10})
    failed = train_all(runs[:1], engine, quiet)
    assert failed == [f"{runs[0].name}: the node is gone"]
    assert len(engine.begun) == 1 + MOST_RESTARTS


def test_a_run_that_comes_further_between_deaths_is_always_started_again(runs, quiet):
    deaths = 3 * MOST_RESTARTS
    engine = PretendEngine(fates={runs[0].name: [DIED] * deaths})

    def start(job, plain=engine.start):
        (job.folder.checkpoints / f"{len(engine.begun):012d}.ckpt").touch()
        return plain(job)

    engine.start = start
    assert train_all(runs[:1], engine, quiet) == []
    assert len(engine.begun) == deaths + 1


def test_a_run_that_another_process_trains_is_waited_for(runs, quiet, capsys):
    """What it leaves unfinished is continued, and what it finishes is not trained again."""
    for run in runs[:2]:
        run.folder.create(run.config)
    engine = PretendEngine()
    released, finished = threading.Event(), threading.Event()

    def other_process():
        with runs[0].folder.locked(), runs[1].folder.locked():
            finished.set()
            released.wait(30)
            engine.finish(runs[1])

    def start(job, plain=engine.start):  # the first two were looked at before
        released.set()
        return plain(job)

    engine.start = start
    other = threading.Thread(target=other_process)
    other.start()
    finished.wait(30)
    assert train_all(runs, engine, quiet) == []
    other.join()
    assert sorted(engine.begun) == sorted(run.name for run in runs if run is not runs[1])
    assert f"{runs[0].name} is being trained by process {os.getpid()} on " in capsys.readouterr().err


def test_no_run_is_left_alone_when_something_goes_wrong(runs, monkeypatch, quiet):
    engine = PretendEngine(fates={run.name: [ALIVE] for run in runs})

    def trip(overview, working, elsewhere):
        raise ValueError("unexpected")

    monkeypatch.setattr(Overview, "show", trip)
    with pytest.raises(ValueError, match="unexpected"):
        train_all(runs, engine, quiet)
    assert [attempt.stopped for attempt in engine.attempts] == [True, True]


def test_asked_to_stop_it_stops_its_runs_and_a_second_call_goes_on(runs, quiet):
    engine = PretendEngine(fates={run.name: [ALIVE] for run in runs[1:]})
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(Interrupted, match="the same command goes on from here"):
        train_all(runs, engine, quiet)
    assert [attempt.stopped for attempt in engine.attempts] == [False, True, True]
    again = PretendEngine()
    assert train_all(runs, again, quiet) == []
    assert again.begun == [run.name for run in runs[1:]]


def test_the_table_shows_every_run_and_how_far_it_is(runs, monkeypatch):
    monkeypatch.setattr(overview, "MOST_ROWS", 2)
    for run in runs[:3]:
        run.folder.create(run.config)
    evaluated = {f"evaluation/{name}": value for name, value in made_up_summary(4, 16).items()}
    lines = [{"step": 512, "minutes": 0.1, "steps_per_second": 1234.5}, {"step": 1024, "minutes": 0.2, **evaluated}]
    runs[0].folder.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    console = Console(record=True, width=150, force_terminal=True, file=io.StringIO())
    shown = Overview(console, runs)
    with runs[0].folder.locked() as lock:
        assert standing(runs[0]).place == lock.holder.host
        console.print(shown.table(runs[:2], [runs[2]]))
    first, second, *_ = [line for line in console.export_text().splitlines() if "doors" in line]
    assert all(word in first for word in (runs[0].name, lock.holder.host, "1,024", "1,234", "25.0%"))
    assert "starting" in second


def test_the_table_counts_what_does_not_fit(runs, monkeypatch):
    monkeypatch.setattr(overview, "MOST_ROWS", 2)
    console = Console(record=True, width=150, file=io.StringIO())
    console.print(Overview(console, runs).table(runs[:3], []))
    assert "and 1 more; 0/4 runs done" in console.export_text()


def test_the_time_left_is_estimated_by_the_speed_so_far(runs):
    shown = Overview(Console(stderr=True), runs)
    assert shown.time_left == "6 min left", "by the table: a minute and a half each"
    shown.began = time.monotonic() - 3600
    for run in runs[:2]:
        run.folder.create(run.config)
        PretendEngine().finish(run)
        shown.end(run)
    assert shown.time_left == "1 h 00 min left"


def test_all_runs_are_finished(runs, quiet):
    assert train_all(runs, PretendEngine(fates={runs[0].name: [FINISHED]}), quiet) == []
    assert all(run.done for run in runs)
