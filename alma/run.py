"""A run on disk: its folder, and the loop that trains, evaluates, logs and saves until it is done or stopped."""

import json
import math
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None  # type: ignore[assignment]

from alma import runtime
from alma.checkpoint import (
    UNFINISHED,
    CheckpointError,
    MisfitError,
    load_notes,
    load_tree,
    save_tree,
    written_at_once,
)
from alma.configuration import RunConfig, from_json, to_json
from alma.evaluation import play_episodes, summarise
from alma.learning.level import Figures
from alma.policy import WEIGHTS, LearnedPolicy, fingerprint
from alma.report.sinks import JsonLines, Sink, TensorBoard, Wandb
from alma.trainer import Trainer, TrainState, compile_chunk

Compiled = Callable[[TrainState], tuple[TrainState, Figures]]
"""`Trainer.chunk`, ready to be called."""


class Interrupted(Exception):  # noqa: N818
    """The run was asked to stop; everything is saved."""


class TrainingFailed(ValueError):  # noqa: N818
    """The run cannot go on."""


@dataclass(frozen=True)
class RunFolder:
    """The files of a run.

    `config.json`, `metrics.jsonl`, `tensorboard/`, `checkpoints/` (the last two), `policy.safetensors` (what was
    learned so far), `lock`, and `result.json` once it is done.
    """

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def check_free(self, force: bool = False) -> None:
        """Complain about a folder that has something in it, or that --force should not delete."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file: choose another folder with --out")
        if not self.path.is_dir() or not any(self.path.iterdir()):
            return
        if not force:
            raise ValueError(
                f"{self.path} exists already: go on with --resume {self.path}, start over with --force, "
                "or choose another folder with --out"
            )
        if not self.config.exists():
            raise ValueError(f"{self.path} is no run folder, so --force will not delete it: choose another --out")

    def create(self, config: RunConfig, force: bool = False) -> None:
        """Begin a folder; one that has something in it is left alone unless forced, and one that is in use always."""
        self.check_free(force)
        if self.path.is_dir():
            with self.claimed():
                shutil.rmtree(self.path)
        self.checkpoints.mkdir(parents=True)
        write_json(self.config, to_json(config))

    def read_config(self) -> RunConfig:
        if not self.config.exists():
            raise ValueError(f"{self.path} is no run folder: it has no config.json")
        try:
            return from_json(read_json(self.config))
        except TypeError as error:
            raise ValueError(f"{self.config} cannot be read: {error}") from None

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Within, no other process can train here. The claim ends with the process, however that ends."""
        if fcntl is None:
            yield
            return
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"{self.path} is being trained by another process") from None
            yield

    @property
    def way_on(self) -> str:
        """What can be done with a finished run."""
        if self.saved():
            return "give more --steps to go on"
        return "it has no checkpoint to go on from, as published runs have none; train it anew with --out"

    def saved(self) -> list[Path]:
        """Checkpoints, the newest first."""
        return sorted(self.checkpoints.glob("*.ckpt"), reverse=True)

    def save(self, state: TrainState, policy: LearnedPolicy, notes: dict[str, Any]) -> Path:
        """Write the weights and a checkpoint; the last two checkpoints are kept.

        Weights come first: those of a run that is cut off in between are written again when it goes on.
        """
        path = self.checkpoints / f"{int(state.env_steps):012d}.ckpt"
        policy.save(self.path / WEIGHTS)
        save_tree(path, state, notes)
        for old in self.saved()[2:]:
            old.unlink()
        return path

    def load(self, like: Any, warn: Callable[[str], None]) -> tuple[TrainState, dict[str, Any]] | None:
        """The newest checkpoint that is whole; damaged ones are named, and set aside where there is a better one, so
        that they do not count as kept. None if there has been none yet."""
        damaged: list[Path] = []
        for path in self.saved():
            try:
                loaded = load_tree(path, like), load_notes(path)
            except MisfitError:
                raise
            except CheckpointError as error:
                warn(f"{error}; trying the one before")
                damaged.append(path)
                continue
            for other in damaged:
                other.rename(other.with_suffix(".damaged"))
            return loaded
        if damaged:
            raise ValueError(f"no checkpoint in {self.checkpoints} is whole: start over with --force")
        return None

    def tidy(self) -> None:
        """Delete what a process that was killed had begun to write."""
        for left in (*self.path.glob(f"*{UNFINISHED}"), *self.checkpoints.glob(f"*{UNFINISHED}")):
            left.unlink()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file; complaints name it."""
    try:
        data = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} cannot be read: it holds no object")
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON file at once."""
    with written_at_once(path) as unfinished:
        unfinished.write_text(json.dumps(data, indent=2) + "\n")


@runtime_checkable
class Display(Protocol):
    """Shows how a run is doing."""

    def say(self, text: str) -> None: ...

    def show(self, progress: "Progress") -> None: ...


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    step: int
    total: int
    seconds: float
    """Of training, without compilation and evaluation."""
    steps_per_second: float
    figures: dict[str, float]
    evaluations: list[dict[str, Any]]


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Within, the first request to stop is only noted: the answer is whether there was one. A second one kills.

    Requests are Ctrl-C, SIGTERM, and where there is such a thing a terminal that is closed.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are none of its business
        yield lambda: False
        return
    asked: list[int] = []
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        for name, handler in before.items():
            signal.signal(name, handler)

    for name in filter(None, (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None))):
        before[name] = signal.signal(name, note)
    try:
        yield lambda: bool(asked)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@dataclass
class Run:
    """A run under way."""

    folder: RunFolder
    config: RunConfig
    display: Display
    wandb: bool = False

    def __post_init__(self) -> None:
        self.trainer: Trainer = self.config.make_trainer()
        self.evaluations: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.rate = 0.0
        self.sinks: list[Sink] = []
        self.gathered = Gathered()

    def train(self) -> dict[str, Any]:
        """Train until done, and say what came of it. Raises `Interrupted` when asked to stop."""
        options = self.config.options
        if self.folder.result.exists():
            raise ValueError(f"{self.folder.path} is finished: {self.folder.way_on}, or see its result.json")
        with self.folder.claimed(), stop_on_signal() as asked_to_stop:
            state, compiled = self._prepare()
            self._open_sinks(int(state.env_steps))
            try:
                state = self._loop(state, compiled, asked_to_stop)
            finally:
                for sink in self.sinks:
                    sink.close()
            result = {
                "step": int(state.env_steps),
                "updates": int(state.updates),
                "training_minutes": self.seconds / 60,
                "cores": runtime.cores(),
                "seed": self.config.seed,
                "method": self.config.method,
                "task": self.config.task,
                "preset": self.config.preset,
                "evaluation": self.evaluations[-1],
                "last_3_success_rate": fmean(entry["success_rate"] for entry in self.evaluations[-3:]),
                "target_steps": options.steps,
                "weights": fingerprint(self.folder.path / WEIGHTS),
            }
            write_json(self.folder.result, result)
            return result

    def _prepare(self) -> tuple[TrainState, Compiled]:
        """The first state and the compiled loop, before the clock starts."""
        began = time.monotonic()
        state = self._begin()
        compiled = compile_chunk(self.trainer, self.config.options.updates_per_chunk)
        self.display.say(f"compiled in {time.monotonic() - began:.1f} s")
        return state, compiled

    def _begin(self) -> TrainState:
        self.folder.tidy()
        loaded = self.folder.load(self.trainer.state_like(), self.display.say)
        if loaded is None:
            return self.trainer.init(jax.random.key(self.config.seed))
        state, notes = loaded
        self.seconds, self.evaluations = notes["seconds"], notes["evaluations"]
        self.gathered = Gathered(**notes["gathered"])
        self.display.say(f"going on at step {int(state.env_steps):,}")
        return self.trainer.plan(state)

    def _open_sinks(self, step: int) -> None:
        self.sinks = [JsonLines(self.folder.metrics, step), TensorBoard(self.folder.path / "tensorboard", step)]
        if self.wandb:
            self.sinks.append(Wandb(self.folder.path, to_json(self.config)))

    def _loop(self, state: TrainState, compiled: Compiled, asked_to_stop: Callable[[], bool]) -> TrainState:
        options, report = self.config.options, self.config.options.report
        saved_at = time.monotonic()
        step = int(state.env_steps)
        while step < options.steps:
            began = time.monotonic()
            state, figures = jax.block_until_ready(compiled(state))
            took = time.monotonic() - began
            before, step = step, int(state.env_steps)
            self.seconds += took
            self.rate = (step - before) / took
            numbers = {name: float(value) for name, value in figures.items()}
            # Losses were computed before the last update: what it has done shows in parameters alone.
            self._check_finite({**numbers, **_parameters(state)}, step)
            self.gathered.add(numbers, step - before)
            shown = self._shown(step)
            self.display.show(Progress(step, options.steps, self.seconds, self.rate, shown, self.evaluations))
            if _crosses(before, step, report.log_every):
                self._write(step, {**shown, "steps_per_second": self.rate})
                self.gathered = Gathered()
            last = step >= options.steps
            if last or _crosses(before, step, report.evaluate_every):
                self._evaluate(state, step, report.final_episodes if last else report.episodes)
            stop = asked_to_stop()
            if last or stop or time.monotonic() - saved_at > 60 * report.checkpoint_minutes:
                self._save(state)
                saved_at = time.monotonic()
            if stop and not last:
                raise Interrupted(f"stopped at step {step:,}; go on with: alma train --resume {self.folder.path}")
        return state

    def _save(self, state: TrainState) -> None:
        policy = LearnedPolicy(self.config, self.trainer.learned(state))
        notes = {"seconds": self.seconds, "evaluations": self.evaluations, "gathered": vars(self.gathered)}
        self.folder.save(state, policy, notes)

    def _shown(self, step: int) -> dict[str, float]:
        explore = self.config.options.exploration
        return {
            **self.gathered.figures(),
            "explore_action": float(explore.action(step)),
            "explore_proposal": float(explore.proposal(step)),
            "explore_subtask": float(explore.subtask(step)),
        }

    def _check_finite(self, figures: dict[str, float], step: int) -> None:
        bad = [name for name, value in figures.items() if not math.isfinite(value)]
        if not bad:
            return
        saved = self.folder.saved()
        where = f"the last good state is {saved[0]}" if saved else "there was no checkpoint yet"
        raise TrainingFailed(f"{', '.join(bad)} is not finite any more at step {step:,}; {where}")

    def _evaluate(self, state: TrainState, step: int, episodes: int) -> None:
        """Greedy episodes; which ones depends on the seed and the step alone, so that a resumed run sees the same."""
        seed = (self.config.seed * 1_000_003 + step) % 2**31
        results = play_episodes(self.trainer.task, self.trainer.players(state), episodes, seed)
        summary = {"step": step, "minutes": self.seconds / 60, **summarise(results)}
        self.evaluations = [*self.evaluations, summary]
        flat = {f"evaluation/{name}": value for name, value in summary.items() if name not in ("step", "minutes")}
        self._write(step, flat)

    def _write(self, step: int, figures: dict[str, Any]) -> None:
        for sink in self.sinks:
            sink.write(step, {"minutes": round(self.seconds / 60, 4), **figures})


@dataclass
class Gathered:
    """Figures of several chunks, put together."""

    totals: dict[str, float] = field(default_factory=dict)
    steps: int = 0

    def add(self, figures: dict[str, float], steps: int) -> None:
        self.steps += steps
        updates = figures["updates"]
        for name, value in figures.items():
            weight = 1.0 if name in ADDED_UP else updates
            self.totals[name] = self.totals.get(name, 0.0) + weight * value

    def figures(self) -> dict[str, float]:
        """Rates and means."""
        totals = self.totals
        episodes, updates = totals["episodes"], totals["updates"]
        means = {name: value / updates for name, value in totals.items() if name not in ADDED_UP and updates}
        return {
            "episodes": episodes,
            "updates": updates,
            "reward_per_step": totals["reward"] / self.steps,
            **({"solved_while_exploring": totals["solved"] / episodes} if episodes else {}),
            **means,
        }


ADDED_UP = ("episodes", "solved", "reward", "updates")
"""Figures that are sums; the others are means over updates."""


def _parameters(state: TrainState) -> dict[str, float]:
    """The largest of each level; not finite if any is not."""
    levels = {"actors": state.actors, "allocator": state.allocator}
    return {
        f"a parameter of the {name}": float(
            np.max([np.max(np.abs(leaf)) for leaf in jax.tree.leaves(level.params)], initial=0)
        )
        for name, level in levels.items()
    }


def _crosses(before: int, after: int, every: int) -> bool:
    return before // every != after // every


def extend(folder: RunFolder, config: RunConfig, steps: int, warn: Callable[[str], None]) -> RunConfig:
    """Let a run go on for longer than it was meant to. Its result is kept until there is something to go on from."""
    if steps < config.options.steps:
        raise ValueError(f"{folder.path} is set to {config.options.steps:,} steps already: --steps can only raise that")
    if folder.result.exists() and not folder.saved():
        raise ValueError(f"{folder.path} is finished: {folder.way_on}")
    longer = replace(config, options=replace(config.options, steps=steps))
    with folder.claimed():
        folder.load(longer.make_trainer().state_like(), warn)
        write_json(folder.config, to_json(longer))
        folder.result.unlink(missing_ok=True)
    return longer
