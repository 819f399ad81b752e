"""`alma resume`, and `alma train --resume`, which means the same."""

from dataclasses import replace

import pytest
from helpers.commandline import run

from alma.cli import resume
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder

BEFORE = RunConfig("save-the-city", preset="tiny")
STEPS = BEFORE.options.steps


@pytest.fixture
def trained(monkeypatch):
    """What is asked of the run, without a run: its folder, its steps, whether it is quiet, and on how many devices."""
    asked, configs = [], {}

    def extend(folder, config, steps, warn):
        configs[folder] = replace(config, options=replace(config.options, steps=steps))

    def train_in(folder, config, quiet, wandb, devices):
        asked.append((folder.path.name, config.options.steps, quiet))

    monkeypatch.setattr(RunFolder, "read_config", lambda folder, trust: configs.get(folder, BEFORE))
    monkeypatch.setattr(resume, "extend", extend)
    monkeypatch.setattr(resume, "train_in", train_in)
    return asked


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["resume", "starcraft"], ("starcraft", STEPS, False)),
        (["resume", "run", "--quiet"], ("run", STEPS, True)),
        (["resume", "--steps", "3000000", "run"], ("run", 3_000_000, False)),
        (["train", "--resume", "starcraft", "--steps", "5"], ("starcraft", 5, False)),
        (["train", "--resume=run", "--quiet"], ("run", STEPS, True)),
        (["train", "--steps", "5", "--quiet", "--resume", "run"], ("run", 5, True)),
        (["train", "--no-quiet", "--resume", "run"], ("run", STEPS, False)),
    ],
)
def test_a_run_goes_on(trained, arguments, expected, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(*arguments)
    assert trained == [expected]
    assert ("has its own command now: alma resume" in capsys.readouterr().err) == (arguments[0] == "train")


@pytest.mark.parametrize(
    "flag", [("--actors.gamma", "0.98"), ("--seed", "0"), ("--preset=fast",), ("--method", "alma"), ("save-the-city",)]
)
@pytest.mark.parametrize("command", [("resume",), ("train", "--resume")])
def test_a_resumed_run_keeps_its_configuration(trained, command, flag):
    """Not even what a preset has anyway is taken: the run may have been given something else."""
    with pytest.raises(SystemExit) as stopped:
        run(*command, "run", *flag)
    assert stopped.value.code
    assert not trained


@pytest.mark.parametrize("arguments", [("resume",), ("train", "--resume"), ("train", "--resume", "--quiet")])
def test_a_run_to_resume_must_be_named(trained, arguments):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code
    assert not trained


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one", "other"], "resume one run at a time, or several of one program with --together"),
        (["one", "other", "--together", "--devices", "2"], "--together trains in one process on one device"),
        (["one", "--devices", "0"], "--devices must be at least 1, not 0"),
    ],
)
def test_runs_that_cannot_go_on_like_that_are_refused(trained, arguments, message):
    with pytest.raises(SystemExit, match=message):
        run("resume", *arguments)
    assert not trained


def test_runs_that_are_trained_together_differ_in_their_seeds_alone(trained, monkeypatch):
    together = []
    monkeypatch.setattr(resume, "train_together_in", lambda folders, configs, quiet: together.append(configs))
    monkeypatch.setattr(RunFolder, "read_config", lambda folder, trust: replace(BEFORE, seed=len(folder.path.name)))
    run("resume", "a", "bc", "--together")
    assert [[config.seed for config in configs] for configs in together] == [[1, 2]]
    monkeypatch.setattr(RunFolder, "read_config", lambda folder, trust: replace(BEFORE, method=folder.path.name))
    with pytest.raises(SystemExit, match="runs that differ in nothing but their seeds"):
        run("resume", "flat", "copa", "--together")
