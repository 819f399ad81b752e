"""Runs on several devices and in several processes, seen from their folders."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.doors import SMALL

from alma.runs import runtime
from alma.runs.config import RunConfig
from alma.runs.devices import make_program, use_devices, usual_devices
from alma.runs.folder import RunFolder
from alma.runs.loop import Run, train
from alma.runs.policy import WEIGHTS
from alma.runs.signals import Interrupted
from alma.runs.weights import read_weights
from alma.training.options import ReportOptions, with_overrides
from alma.training.presets import preset

CHUNK = 640
REPORT = ReportOptions(
    chunk=CHUNK, log_every=CHUNK, evaluate_every=CHUNK, episodes=16, final_episodes=16, checkpoint_minutes=1e-9
)
CONFIG = RunConfig("helpers.doors:Doors", options=replace(SMALL, steps=8 * CHUNK, report=REPORT), preset="tiny")
SECONDS = 300
"""Most that a process may take: it imports, compiles and trains."""


class Watch:
    """A display that remembers what was said, and that can pull the plug."""

    def __init__(self, stop_at=None):
        self.stop_at, self.said = stop_at, []

    def say(self, text):
        self.said.append(text)

    def show(self, progress):
        if progress.step == self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)


def train_on(devices, folder, stop_at=None):
    run = Run(folder, CONFIG, Watch(stop_at))
    return train([run], make_program(run.trainer, devices), run.display)[0]


def weights(folder):
    return read_weights(folder.path / WEIGHTS)[1]


def test_a_run_moves_to_another_number_of_devices(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG)
    assert folder.devices is None
    with pytest.raises(Interrupted):
        train_on(2, folder, stop_at=3 * CHUNK)
    assert folder.devices == 2
    with pytest.raises(Interrupted):
        train_on(1, folder, stop_at=5 * CHUNK)
    assert folder.devices == 1
    result = train_on(2, folder)
    assert (result["step"], result["devices"]) == (8 * CHUNK, 2)
    steps = [json.loads(line)["step"] for line in folder.metrics.read_text().splitlines()]
    assert sorted(set(steps)) == [number * CHUNK for number in range(1, 9)]


def test_there_must_be_as_many_devices():
    with pytest.raises(ValueError, match=f"devices must be at most {jax.local_device_count()}, as many as JAX has"):
        make_program(CONFIG.make_trainer(), 100)


@pytest.mark.parametrize(
    ("cores", "changes", "devices"),
    [
        (1, {}, 1),
        (2, {}, 2),
        (64, {}, 2),  # 64 environments and 256 transitions each
        (64, {"collection.environments": 256, "actors.batch": 1024}, 4),
        (3, {"collection.environments": 256, "actors.batch": 1024}, 2),  # what can be divided
        (64, {"actors.batch": 128}, 1),
        (64, {"actors.batch": 64, "actors.window": 8}, 2),  # 512 transitions
    ],
)
def test_cores_are_devices_as_long_as_each_has_enough_to_do(monkeypatch, cores, changes, devices):
    monkeypatch.setattr(runtime, "cores", lambda: cores)
    options = with_overrides(preset("fast", "save-the-city"), changes)
    assert usual_devices(RunConfig("save-the-city", options=options)) == devices
    assert use_devices(RunConfig("save-the-city", options=options), 3) == 3, "as asked"


def test_code_of_the_user_s_own_is_trained_on_one_device(monkeypatch):
    monkeypatch.setattr(runtime, "cores", lambda: 2)
    assert usual_devices(RunConfig("helpers.doors:Doors")) == 1
    assert usual_devices(RunConfig("save-the-city", method="helpers.doors:MINE")) == 1


# ---- several processes


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG)
    return folder


def start(folder, *arguments):
    """Start `alma resume` in a process of its own."""
    words = [sys.executable, "-m", "alma", "resume", str(folder.path), "--quiet", "--trust", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def start_two(folder):
    """Start a run in two processes that meet on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    common = ("--distributed", "--coordinator", address, "--processes", "2", "--process")
    return [start(folder, *common, str(number)) for number in range(2)]


def finish(processes):
    """What the processes print. All must succeed."""
    printed = [process.communicate(timeout=SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(printed)
    return printed


@pytest.fixture(scope="module")
def in_two_processes(tmp_path_factory):
    """A run that was trained in two processes, and what these printed."""
    folder = RunFolder(tmp_path_factory.mktemp("two") / "run")
    folder.create(CONFIG)
    return folder, finish(start_two(folder))


def test_two_processes_train_what_two_devices_of_one_train(in_two_processes, folder):
    there, printed = in_two_processes
    train_on(2, folder)
    here, there = weights(folder), weights(there)
    assert here.keys() == there.keys()
    for name in here:
        np.testing.assert_allclose(here[name], there[name], rtol=1e-4, atol=1e-5)
    assert "steps in" in printed[0]
    assert "steps in" not in printed[1], "process 0 alone says something"


def test_a_process_that_dies_is_reported_and_the_run_resumes(in_two_processes, folder):
    processes = start_two(folder)
    deadline = time.monotonic() + SECONDS
    while not folder.saved() and time.monotonic() < deadline:
        time.sleep(0.001)
    processes[1].kill()
    printed, _ = processes[0].communicate(timeout=SECONDS)
    processes[1].communicate()
    assert processes[0].returncode not in (0, None)
    assert not folder.result.exists(), "too late"
    assert "another process of the run was lost; start all of them again with: alma resume" in printed
    finish(start_two(folder))
    whole, _ = in_two_processes
    for name, leaf in weights(whole).items():
        np.testing.assert_array_equal(leaf, weights(folder)[name])
