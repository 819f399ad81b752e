"""`alma resume`, and `alma train --resume`, which means the same."""

import pytest
from helpers.commandline import run

from alma.cli import resume
from alma.runs.folder import RunFolder


@pytest.fixture
def trained(monkeypatch):
    """What is asked of the run, without a run: a configuration for longer, and how to show it."""
    asked = []
    monkeypatch.setattr(RunFolder, "read_config", lambda folder, trust: "as before")
    monkeypatch.setattr(resume, "extend", lambda folder, config, steps, warn: f"{config}, for {steps} steps")
    monkeypatch.setattr(
        resume, "train_in", lambda folder, config, quiet, wandb: asked.append((folder.path.name, config, quiet))
    )
    return asked


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["resume", "starcraft"], ("starcraft", "as before", False)),
        (["resume", "run", "--quiet"], ("run", "as before", True)),
        (["resume", "--steps", "3000000", "run"], ("run", "as before, for 3000000 steps", False)),
        (["train", "--resume", "starcraft", "--steps", "5"], ("starcraft", "as before, for 5 steps", False)),
        (["train", "--resume=run", "--quiet"], ("run", "as before", True)),
        (["train", "--steps", "5", "--quiet", "--resume", "run"], ("run", "as before, for 5 steps", True)),
        (["train", "--no-quiet", "--resume", "run"], ("run", "as before", False)),
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
