"""Files are data: none of them makes a module run that it names, whoever reads it, unless the user says so."""

import json
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.commandline import run
from helpers.doors import SMALL

import alma
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS, Policy
from alma.runs.pretrained import DEFAULT, locate
from alma.runs.weights import read_weights, write_weights
from alma.task.importing import UntrustedError
from alma.training.methods import params_like
from alma.tuning.sweep import read_sweep

PUBLISHED = Path(__file__).parents[1] / "results" / "runs" / "save-the-city_alma_fast_0"
DOORS = "helpers.doors:Doors"


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module in the current folder, which tells when it is run."""
    monkeypatch.chdir(tmp_path)
    Path("trap.py").write_text("open('sprung', 'w').close()\nclass Trap: pass\n")
    yield tmp_path
    assert not (tmp_path / "sprung").exists(), "the module was run"
    assert "trap" not in sys.modules


@pytest.fixture
def files(trap):
    """A run and weights that name code, as a task or as a method."""

    def make(entry, name):
        shutil.copytree(PUBLISHED, "run")
        config = json.loads(Path("run/config.json").read_text())
        Path("run/config.json").write_text(json.dumps({**config, entry: name}))
        data, tensors = read_weights(locate(DEFAULT))
        write_weights(Path("weights.safetensors"), tensors, {**data, entry: name})
        shutil.copy("weights.safetensors", Path("run") / WEIGHTS)
        sweep = {"task": "save-the-city", **({"task": name} if entry == "task" else {"methods": ["alma", name]})}
        Path("sweep.json").write_text(json.dumps(sweep))

    return make


COMMANDS = (
    ("evaluate", "weights.safetensors", "--episodes", "2"),
    ("evaluate", "run"),
    ("evaluate", DEFAULT, "--actors", "weights.safetensors"),
    ("evaluate", DEFAULT, "--allocator", "run"),
    ("watch", "run", "--no-open"),
    ("watch", DEFAULT, "--against", "weights.safetensors", "--no-open"),
    ("resume", "run"),
    ("resume", "run", "--steps", "9000000"),
    ("sweep", "sweep.json", "--dry-run"),
)


NAMES = ("os:system", "builtins:eval", "/etc/trap.py:Trap", "..trap:Trap", ":")


@pytest.mark.parametrize(
    ("entry", "name", "commands"),
    [
        ("task", "trap:Trap", COMMANDS),
        ("method", "trap:Trap", COMMANDS),
        *(("task", name, (("resume", "run"), ("sweep", "sweep.json"))) for name in NAMES),
        *(("method", name, (("evaluate", "run"),)) for name in NAMES),
    ],
)
def test_no_command_runs_what_a_file_names(files, entry, name, commands):
    files(entry, name)
    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            run(*command)
        message = str(stopped.value)
        assert f"names the {entry} {name!r}" in message, command
        assert "nothing was imported" in message
        assert "--trust" in message


@pytest.mark.parametrize("entry", ["task", "method"])
def test_no_function_runs_what_a_file_names(files, entry):
    files(entry, "trap:Trap")
    for call in (
        lambda: alma.load("weights.safetensors"),
        lambda: alma.load("run"),
        lambda: alma.evaluate("run", episodes=2),
        lambda: alma.watch("run"),
        lambda: alma.resume("run"),
        lambda: RunFolder(Path("run")).read_config(),
        lambda: read_sweep(Path("sweep.json")),
    ):
        with pytest.raises(UntrustedError, match=rf"names the {entry} 'trap:Trap'.*trust=True"):
            call()


def test_runs_are_compared_without_their_code(files):
    """Published runs of somebody's own task have stored scores: nothing needs to be played."""
    files("task", "trap:Trap")
    (Path("run") / WEIGHTS).unlink()
    (row,) = alma.compare(["run"]).rows
    assert row.steps > 0


@pytest.mark.parametrize(
    "name", ["/tmp/trap.py:Trap", "../trap:Trap", ".trap:Trap", "trap:", ":", "a b:c", "trap:Trap()"]
)
def test_trust_is_no_way_to_a_path(files, name):
    """Also with trust only modules are imported, and only by their names."""
    files("task", name)
    with pytest.raises(ValueError, match="cannot import the task"):
        alma.load("weights.safetensors", trust=True)


def test_trust_is_no_way_to_other_objects(files):
    files("task", "builtins:eval")
    with pytest.raises(ValueError, match="must be a dataclass that subclasses"):
        alma.load("weights.safetensors", trust=True)


@pytest.fixture
def doors(tmp_path):
    """Weights on a task of one's own."""
    config = RunConfig(DOORS, options=SMALL)
    trainer = config.make_trainer()
    like = params_like(trainer.team, trainer.task)
    params = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)
    return Policy(config, params).save(tmp_path / "doors.safetensors")


def test_a_task_that_is_named_needs_no_trust(doors):
    assert alma.load(doors, task=DOORS).config.task == DOORS
    assert alma.load(doors, trust=True).task == alma.load(doors, trust=frozenset({DOORS})).task
    with pytest.raises(UntrustedError):
        alma.load(doors, trust=frozenset({"another.module:Doors"}))


def test_a_class_that_moved_is_named_anew(doors, monkeypatch):
    """The name in the file is not imported then: there may be nothing behind it any more."""
    data, tensors = read_weights(doors)
    write_weights(doors, tensors, {**data, "task": "before.it_moved:Doors"})
    assert alma.load(doors, task=DOORS).config.task == DOORS
