"""The runs that are tortured: small ones that save after every chunk, and what must be the same at their end."""

import json
import os
import signal
import sys
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from alma.files import UNFINISHED
from alma.runs import distributed, runtime
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.loop import Run, train
from alma.runs.metrics import read_metrics
from alma.runs.policy import WEIGHTS
from alma.runs.weights import read_weights
from alma.training.options import with_overrides
from alma.training.presets import preset
from alma.training.program import OneDevice
from alma.training.sharding import Sharded

CHUNK = 1_024

CHANGES = {
    "collection.buffer": 4_096,
    "collection.decisions": 2_048,
    "report.chunk": CHUNK,
    "report.log_every": 2 * CHUNK,
    "report.evaluate_every": 4 * CHUNK,
    "report.episodes": 16,
    "report.final_episodes": 16,
    "report.checkpoint_minutes": 1e-9,
}


SETTINGS: dict[str, dict[str, Any]] = {
    "save-the-city": {"agents": 2, "max_steps": 30},
    "starcraft": {"fighters": 3, "max_armies": 2, "max_army_size": 3, "max_steps": 30},
}
"""Small tasks with short episodes."""


def small(method: str, chunks: int, seed: int = 0, task: str = "save-the-city") -> RunConfig:
    """A run with tiny networks that saves after each of so many chunks."""
    options = with_overrides(preset("tiny", task), {**CHANGES, "steps": chunks * CHUNK})
    return RunConfig(task, SETTINGS[task], method, "tiny", seed, options)


class Lines:
    """A display that keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)
        print(text, flush=True)

    def show(self, progress: Any) -> None:
        pass


def train_in(folder: RunFolder) -> None:
    """Train in this process, on all devices of the processes that it has joined."""
    run = Run(folder, folder.read_config(), Lines())
    devices = tuple(jax.devices())
    train([run], Sharded(run.trainer, devices) if len(devices) > 1 else OneDevice(run.trainer), run.display)


# ---- processes


@dataclass(frozen=True)
class Child:
    """A process that was forked from this one, which has imported everything but not started JAX."""

    process: int

    def ended(self) -> bool:
        """Whether it has ended; it is not forgotten."""
        return os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)

    def wait(self) -> int:
        """The exit status; of a process that was killed, minus the signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def fork(work: Callable[[], None], log: Path) -> Child:
    """Do something in a process of its own, whose output is appended to a file. A fork starts in milliseconds."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return Child(process)
    code = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(file, 1)
        os.dup2(file, 2)
        runtime.configure()
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def start(folder: RunFolder, processes: int, address: str) -> list[Child]:
    """Train a run whose folder exists, in one or several processes, from where it stands."""
    log = folder.path.with_suffix(".log")

    def work(number: int) -> None:
        if processes > 1:
            distributed.join_run(address, processes, number)
        train_in(folder)

    return [fork(lambda number=number: work(number), log) for number in range(processes)]


def finish(folder: RunFolder, processes: int, address: str) -> None:
    """Train a run to its end. Raises an error if a process fails."""
    codes = [child.wait() for child in start(folder, processes, address)]
    if any(codes):
        raise AssertionError(f"{folder.path}: exit status {codes}, see {folder.path.with_suffix('.log')}")


def is_saving(folder: RunFolder) -> bool:
    """Whether a file of a save is being written, or was when the process was killed."""
    return any(name.endswith(UNFINISHED) for part in (folder.checkpoints, folder.path) for name in os.listdir(part))


# ---- what must be the same


TIMINGS = ("minutes", "steps_per_second")


def ending(folder: RunFolder) -> dict[str, Any]:
    """All that a run has learned and measured, but how long it took."""
    newest = folder.saved()[0]
    with zipfile.ZipFile(newest) as archive:
        arrays = {name: archive.read(name) for name in archive.namelist() if name != "notes.json"}
    _, weights = read_weights(folder.path / WEIGHTS)
    result = json.loads(folder.result.read_text())
    return {
        "checkpoint": (newest.name, arrays),
        "weights": {name: leaf.tobytes() for name, leaf in weights.items()},
        "metrics": [_untimed(line) for line in read_metrics(folder.metrics)],
        "evaluation": _untimed(result["evaluation"]),
        "step": result["step"],
    }


def _untimed(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in TIMINGS}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The parts in which two ends differ; none if they are the same bit for bit."""
    return [name for name in one if one[name] != other[name]]


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Look every millisecond until something is so, or the time is over."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.001)
