"""`alma tune`."""

import json

import pytest
from helpers.commandline import run
from helpers.engine import PretendEngine, finish

from alma.cli.launching import LaunchOptions
from alma.cli.train import read_train

pytest.importorskip("optuna", reason="optuna is not installed: pip install 'alma-marl[tune]'")


@pytest.fixture
def engine(monkeypatch):
    """An engine that trains nothing, in place of any other; a run is as good as its discount is high."""
    engine = PretendEngine(finish=lambda job: finish(job, round(job.config.options.actors.gamma, 2)))
    monkeypatch.setattr(LaunchOptions, "make", lambda options, out: engine)
    return engine


def test_the_best_trial_is_a_preset_that_train_takes(engine, tmp_path, capsys):
    out = tmp_path / "tune"
    arguments = ("save-the-city", "--preset", "tiny", "--seeds", "0..1", "--space", "actors", "--out", out)
    run("tune", *arguments, "--trials", 3)
    assert len(engine.begun) == 6
    best = json.loads((out / "best.json").read_text())
    gammas = [attempt.job.config.options.actors.gamma for attempt in engine.attempts]
    assert best["options"]["actors.gamma"] == max(gammas)
    options = read_train(["save-the-city", "--preset", str(out / "best.json")]).options
    assert options.actors.gamma == max(gammas)
    assert f"alma train save-the-city --preset {out / 'best.json'}" in capsys.readouterr().out
    run("tune", *arguments, "--trials", 4)
    assert len(engine.begun) == 8, "one trial more"
    with pytest.raises(SystemExit, match="holds a search with another seeds"):
        run("tune", *arguments, "--seeds", "0..2")


@pytest.mark.parametrize(
    ("method", "level"), [("alma", "allocator."), ("heuristic", "actors.")], ids=["both levels", "actors alone"]
)
def test_what_is_searched_is_what_learns(engine, tmp_path, method, level):
    run("tune", "save-the-city", "--method", method, "--preset", "tiny", "--trials", 1, "--out", tmp_path / "tune")
    searched = json.loads((tmp_path / "tune" / "search.json").read_text())["space"]
    assert any(option.startswith(level) for option in searched)
    assert any(option.startswith("allocator.") for option in searched) == (method == "alma")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trials", 0), "trials must be at least 1, not 0"),
        (("--method", "heuristic", "--space", "both"), "the allocator of heuristic does not learn"),
        (("--space", "best"), "unknown search space 'best'"),
        (("--engine", "slurm"), "say with --jobs how many runs to submit at a time"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_written(engine, tmp_path, arguments, message):
    with pytest.raises(SystemExit, match=message):
        run("tune", "save-the-city", "--preset", "tiny", *arguments, "--out", tmp_path / "tune")
    assert not (tmp_path / "tune").exists()
