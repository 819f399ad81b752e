"""A small part of the campaign that `make torture` runs."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.summaries import made_up_result, made_up_summary
from torture import arguments, fuzz
from torture.runs import small

from alma.runs.config import learning_config
from alma.runs.folder import RunFolder
from alma.runs.policy import Policy

STEP = 2_048

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run as it is when it is finished, without having been trained."""
    folder, config = RunFolder(tmp_path_factory.mktemp("runs") / "run"), small("alma", 2)
    folder.create(config)
    trainer = config.make_trainer()
    state = replace(jax.tree.map(zeros, trainer.state_like()), env_steps=np.int32(STEP))
    evaluation = {"step": STEP, "minutes": 1.0, **made_up_summary(3, 16)}
    metrics = {"totals": {"loss": 1.0}, "steps": 0}
    notes = {"config": learning_config(config), "seconds": 60.0, "evaluations": [evaluation], "metrics": metrics}
    folder.save(state, Policy(config, trainer.play_params(state)), notes)
    folder.result.write_text(json.dumps(made_up_result(STEP, 1.0, made_up_summary(3, 16)), indent=2))
    logged = {"step": 1_024, "minutes": 0.5, "loss": 0.25}
    evaluated = {"step": STEP, "minutes": 1.0, **{f"evaluation/{name}": evaluation[name] for name in evaluation}}
    del evaluated["evaluation/step"], evaluated["evaluation/minutes"]
    folder.metrics.write_text(
        "".join(json.dumps(line) + "\n" for line in (logged, {**logged, "step": STEP}, evaluated))
    )
    return folder


def zeros(leaf):
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.zeros((*leaf.shape, 2), jnp.uint32))
    return np.zeros(leaf.shape, leaf.dtype)


@pytest.mark.parametrize("number", range(11))
def test_mutated_files_are_refused_or_read_as_what_they_say(run, tmp_path, number):
    kind = fuzz.kinds(run, tmp_path)[number]
    outcome = fuzz.fuzz(kind, 100, seed=1)
    assert outcome.failures == []
    assert outcome.refused > 50
    assert outcome.files == outcome.refused + outcome.unchanged + outcome.as_written == 100


def test_there_is_a_case_for_every_kind(run, tmp_path):
    assert len(fuzz.kinds(run, tmp_path)) == 11


def test_the_order_of_flags_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert arguments.ordered(20, seed=1).failures == []


def test_nonsense_is_refused_in_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert arguments.nonsense(20, seed=1).failures == []


def test_a_killed_run_ends_as_the_one_that_was_left_alone(tmp_path):
    """Two real kills, one of them inside of a save. In processes that are forked before JAX starts."""
    command = [sys.executable, "-m", "torture", "--only", "kills", "--subjects", "flat", "--kills", "2"]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "studies")])
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| flat | 2 |" in done.stdout
