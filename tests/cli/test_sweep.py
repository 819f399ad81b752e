"""`alma sweep`."""

import csv

import pytest
from helpers.commandline import run
from helpers.engine import PretendEngine, finish

from alma.cli.consoles import console
from alma.cli.launching import LaunchOptions
from alma.cli.sweep import parse_values


@pytest.fixture
def engine(monkeypatch):
    """An engine that trains nothing, in place of any other; longer returns make better runs."""
    engine = PretendEngine(finish=lambda job: finish(job, 0.1 * job.config.options.actors.n_step))
    monkeypatch.setattr(LaunchOptions, "make", lambda options, out: engine)
    return engine


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("actors.n_step=1,3", ("actors.n_step", (1, 3))),
        ("set.agents=2..5,3", ("set.agents", ((2, 5), 3))),
        ("actors.ends=episode,subtask", ("actors.ends", ("episode", "subtask"))),
    ],
)
def test_values_are_written_as_for_set(text, values):
    assert parse_values(text) == values


def test_values_must_be_given():
    with pytest.raises(ValueError, match="write values to sweep as OPTION=VALUE,VALUE"):
        parse_values("actors.n_step")


def test_a_sweep_is_trained_and_shown(engine, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(console, "width", 200)
    swept = ("--vary", "actors.n_step=1,3", "--seeds", "0..1", "--preset", "tiny")
    run("sweep", "save-the-city", *swept, "--out", tmp_path)
    printed = capsys.readouterr().out
    assert len(engine.begun) == 4
    assert "actors.n_step=3" in printed
    assert "0.300" in printed
    with (tmp_path / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["actors.n_step"], row["seed"], row["success_rate"]) for row in rows] == [
        ("1", "0", "0.1"),
        ("3", "0", "0.3"),
        ("1", "1", "0.1"),
        ("3", "1", "0.3"),
    ]
    run("sweep", "save-the-city", *swept, "--out", tmp_path)
    assert len(engine.begun) == 4, "finished runs are kept"


def test_a_dry_run_only_says_what_there_is_to_do(engine, tmp_path, capsys):
    run("sweep", "save-the-city", "--vary", "actors.n_step=1,3", "--dry-run", "--out", tmp_path)
    assert "n_step=3" in " ".join(capsys.readouterr().out.split())
    assert not any(tmp_path.iterdir())
    assert not engine.begun


def test_flags_replace_what_a_file_says(engine, tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text('task = "save-the-city"\npreset = "tiny"\nseeds = [0, 1]\ngrid = { actors.n_step = [1, 3] }')
    run("sweep", file, "--seeds", "5", "--steps", 2_048, "--out", tmp_path / "out")
    assert len(engine.begun) == 2
    jobs = [attempt.job for attempt in engine.attempts]
    assert {(job.config.seed, job.config.options.steps) for job in jobs} == {(5, 2_048)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--vary", "actors.n_steps=1,3"), "actors.n_steps: there is no option 'n_steps' here"),
        (("--methods", "best"), "best"),
        (("--seeds", "0..x"), "write seeds as"),
        (("--engine", "local", "--address", "10.0.0.1:1"), "--address is for --engine ray"),
        (("--slurm", "time=5"), "--slurm is for --engine slurm"),
        (("--engine", "slurm", "--slurm", "time=long"), "write --slurm time=MINUTES"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_written(engine, tmp_path, arguments, message):
    with pytest.raises(SystemExit, match=message):
        run("sweep", "save-the-city", *arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
