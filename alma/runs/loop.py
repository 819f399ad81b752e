"""The loop of a run: train, evaluate, log and save checkpoints until done or stopped."""

import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

import jax
import numpy as np

from alma.files import write_json
from alma.play.episodes import play_episodes
from alma.play.team import TeamParams
from alma.runs import distributed, runtime
from alma.runs.config import RunConfig, learning_config, to_json
from alma.runs.folder import RunFolder
from alma.runs.lock import Lock
from alma.runs.memory import check_room
from alma.runs.metrics import EVALUATION, MetricAccumulator, read_metrics
from alma.runs.policy import WEIGHTS, Policy, fingerprint
from alma.runs.progress import COMPILING, Display, Progress, mean_progress
from alma.runs.signals import Interrupted, run_interruptibly, stop_on_signal
from alma.runs.sinks import JsonLines, Sink, TensorBoard, Wandb
from alma.task.callbacks import raises_plainly
from alma.training.program import Chunk, OneDevice, Program
from alma.training.trainer import Trainer, TrainState


class TrainingFailed(ValueError):  # noqa: N818
    """Training cannot continue: a loss or a parameter is not finite any more."""


@dataclass
class Run:
    """A run that is being trained: its folder, its trainer, its metrics so far, and the logs it writes."""

    folder: RunFolder
    config: RunConfig
    display: Display
    wandb: bool = False

    def __post_init__(self) -> None:
        self.trainer: Trainer = self.config.make_trainer()
        self.evaluations: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.faults = self.trainer.task.faults
        self.sinks: list[Sink] = []
        self.metrics = MetricAccumulator()
        self.lock: Lock | None = None

    def train(self) -> dict[str, Any]:
        """Train on one device to the end, or from the last checkpoint on; returns the contents of `result.json`.

        Raises `Interrupted` if a signal asked the run to stop; what had been trained is saved.
        """
        return train([self], OneDevice(self.trainer), self.display)[0]

    def prepare(self) -> None:
        """Make sure that the folder is in order, and that nothing is left of a process that was killed."""
        self.folder.check_holds(self.config)
        self.folder.check_resumable()
        read_metrics(self.folder.metrics)  # complains of damage, before anything is compiled
        self.folder.checkpoints.mkdir(exist_ok=True)
        self.folder.delete_unfinished()

    def load(self, step: int | None = None) -> TrainState | None:
        """The state in the newest checkpoint, or in the one of that step; None if there are no checkpoints yet."""
        loaded = self.folder.load(self.config, self.trainer.state_like(), self.display.say, step)
        if loaded is None:
            return None
        state, notes = loaded
        self.seconds, self.evaluations = notes["seconds"], notes["evaluations"]
        self.metrics = MetricAccumulator(**notes["metrics"])
        return self.trainer.plan(state)

    def open_sinks(self, step: int) -> None:
        self.sinks = []  # one at a time, so that all that were opened are closed if the next cannot be
        self.sinks.append(JsonLines(self.folder.metrics, step))
        self.sinks.append(TensorBoard(self.folder.path / "tensorboard", step))
        if self.wandb:
            self.sinks.append(Wandb(self.folder.path, to_json(self.config)))

    def check_lock(self) -> None:
        """Raise an error before anything is written if another process has taken the folder over."""
        if self.lock:
            self.lock.check()

    def close_sinks(self) -> None:
        for sink in self.sinks:
            sink.close()

    def record(self, numbers: dict[str, float], params: TeamParams, before: int, step: int, seconds: float) -> Progress:
        """Add up the metrics of a chunk of steps, and log them where that is due; returns the progress of the run.

        Raises `TrainingFailed` if a metric or parameter is not finite.
        """
        self.seconds += seconds
        rate = (step - before) / seconds
        # Losses were computed before the last update; only the parameters show whether it went wrong.
        self._check_finite({**numbers, **_largest(params)}, step)
        self.metrics.add({**numbers, **self._new_faults()}, step - before)
        shown = self._shown(step)
        if _crosses(before, step, self.config.options.report.log_every):
            self._write(step, {**shown, "steps_per_second": rate})
            self.metrics = MetricAccumulator()
        return Progress(step, self.config.options.steps, self.seconds, rate, shown, self.evaluations)

    def _new_faults(self) -> dict[str, float]:
        """How often a simulator has failed since the last chunk; nothing for tasks without one."""
        if self.trainer.task.is_pure:
            return {}
        before, self.faults = self.faults, self.trainer.task.faults
        return {"faults": float(self.faults - before)}

    def save(self, state: TrainState, params: TeamParams, devices: int) -> None:
        notes = {
            "config": learning_config(self.config),
            "seconds": self.seconds,
            "evaluations": self.evaluations,
            "metrics": vars(self.metrics),
            "devices": devices,
        }
        self.folder.save(state, Policy(self.config, params), notes)

    def finish(self, step: int, updates: int, devices: int) -> dict[str, Any]:
        """The contents of `result.json`, which process 0 of a distributed run writes."""
        result = {
            "step": step,
            "updates": updates,
            "training_minutes": self.seconds / 60,
            "cores": runtime.cores(),
            "devices": devices,
            "seed": self.config.seed,
            "method": self.config.method,
            "task": self.config.task,
            "preset": self.config.preset,
            "evaluation": self.evaluations[-1],
            "last_3_success_rate": fmean(entry["success_rate"] for entry in self.evaluations[-3:]),
            "target_steps": self.config.options.steps,
        }
        if distributed.is_writer():
            result["weights"] = fingerprint(self.folder.path / WEIGHTS)
            write_json(self.folder.result, result)
        return result

    def _shown(self, step: int) -> dict[str, float]:
        explore = self.config.options.exploration
        return {
            **self.metrics.metrics(),
            "explore_action": float(explore.action(step)),
            "explore_proposal": float(explore.proposal(step)),
            "explore_subtask": float(explore.subtask(step)),
        }

    def _check_finite(self, metrics: dict[str, float], step: int) -> None:
        bad = [name for name, value in metrics.items() if not math.isfinite(value)]
        if not bad:
            return
        saved = self.folder.saved()
        where = f"the last good state is {saved[0]}" if saved else "there was no checkpoint yet"
        raise TrainingFailed(f"{', '.join(bad)} is not finite any more at step {step:,}; {where}")

    def evaluate(self, params: TeamParams, step: int, episodes: int, poll: Callable[[], None]) -> None:
        """Evaluate without exploration, and log the results. Episodes depend only on seed and step, so that resuming
        changes nothing.
        """
        seed = (self.config.seed * 1_000_003 + step) % 2**31
        task, team = self.trainer.task, self.trainer.team
        results = run_interruptibly(lambda: play_episodes(task, team, params, episodes, seed), poll)
        summary = {"step": step, "minutes": self.seconds / 60, **results.summary()}
        self.evaluations = [*self.evaluations, summary]
        flat = {f"{EVALUATION}{name}": value for name, value in summary.items() if name not in ("step", "minutes")}
        self._write(step, flat)

    def _write(self, step: int, metrics: dict[str, Any]) -> None:
        for sink in self.sinks:
            sink.write(step, {"minutes": round(self.seconds / 60, 4), **metrics})


def _largest(params: TeamParams) -> dict[str, float]:
    """The largest absolute parameter of each level, which is not finite if any parameter is not."""
    return {
        f"a parameter of the {name}": float(
            np.max([np.max(np.abs(leaf), initial=0) for leaf in jax.tree.leaves(level)], initial=0)
        )
        for name, level in params.items()
    }


@raises_plainly
def train(runs: Sequence[Run], program: Program, display: Display) -> list[dict[str, Any]]:
    """Train the runs of a program to their end, or from their last checkpoints on; returns the contents of their
    `result.json`.

    Runs of one program differ in their seeds alone. Raises `Interrupted` if a signal asked to stop; what had been
    trained is saved.
    """
    with ExitStack() as opened:
        opened.enter_context(distributed.partners_watched(resume_command(runs)))
        asked_to_stop = opened.enter_context(stop_on_signal())
        distributed.writer_first(lambda: _open_folders(runs, opened))
        state, chunk = _prepare(runs, program, display, asked_to_stop)
        if distributed.is_writer():
            for run in runs:
                opened.callback(run.close_sinks)
                run.open_sinks(_step(state))
        return _loop(runs, program, display, state, chunk, asked_to_stop)


def _open_folders(runs: Sequence[Run], opened: ExitStack) -> None:
    """Lock the folders and put them in order."""
    for run in runs:
        run.folder.check_unfinished()
    for run in runs:
        run.lock = opened.enter_context(run.folder.locked(run.display.say))
        run.prepare()


def _prepare(
    runs: Sequence[Run], program: Program, display: Display, asked_to_stop: Callable[[], bool]
) -> tuple[TrainState, Chunk]:
    """The initial or loaded train state, and the compiled loop. Not counted as training time.

    There is nothing to save yet, so that a signal ends it at once.
    """

    def give_up() -> None:
        if asked_to_stop() and jax.process_count() == 1:
            raise Interrupted(f"stopped while compiling; go on with: {resume_command(runs)}")

    began = time.monotonic()
    if jax.process_count() == 1:  # several share the state out
        run_interruptibly(lambda: check_room(runs[0].config, len(runs)), give_up)
    states = _load(runs)
    if states:
        display.say(f"going on at step {_step(states[0]):,}")
    display.say(COMPILING)
    chunk = run_interruptibly(lambda: program.compile(runs[0].config.options.updates_per_chunk), give_up)
    seeds = [run.config.seed for run in runs]
    state = program.place(states) if states else run_interruptibly(lambda: program.begin(seeds), give_up)
    display.say(f"compiled in {time.monotonic() - began:.1f} s")
    return state, chunk


def _load(runs: Sequence[Run]) -> list[TrainState]:
    """The states of the newest checkpoints; with several runs, of the newest step that all have one of."""
    newest = None
    if len(runs) > 1:
        steps = [run.folder.saved_steps() for run in runs]
        newest = max(set.intersection(*steps), default=None)
        if newest is None and any(steps):
            raise ValueError("these runs have no checkpoint of the same step: resume each of them by itself")
    states = [run.load(newest) for run in runs]
    return [state for state in states if state is not None]


def _loop(
    runs: Sequence[Run],
    program: Program,
    display: Display,
    state: TrainState,
    chunk: Chunk,
    asked_to_stop: Callable[[], bool],
) -> list[dict[str, Any]]:
    """Train the runs from a state on; returns the contents of their `result.json`. A run that fails stops no other."""
    options, report = runs[0].config.options, runs[0].config.options.report
    going, failures = dict(enumerate(runs)), dict[int, str]()
    saved_at, step = time.monotonic(), _step(state)
    answer = _answer(asked_to_stop, display)
    while step < options.steps:
        began = time.monotonic()
        state, metrics = run_interruptibly(partial(_advance, chunk, state), answer)
        seconds = time.monotonic() - began
        before, step = step, _step(state)
        failures |= _record(going, program, display, state, metrics, before, seconds)
        going = {number: run for number, run in going.items() if number not in failures}
        if not going:
            break
        last = step >= options.steps
        if last or _crosses(before, step, report.evaluate_every):
            _evaluate(going, program, state, report.final_episodes if last else report.episodes, answer)
        stop = distributed.in_any_process(asked_to_stop())
        is_due = time.monotonic() - saved_at > 60 * report.checkpoint_minutes
        if last or stop or distributed.in_any_process(is_due):
            _save(going, program, state)
            saved_at = time.monotonic()
        if stop and not last:
            raise Interrupted(f"stopped at step {step:,}; go on with: {resume_command(runs)}")
    updates = np.broadcast_to(np.asarray(state.updates), len(runs))
    results = [run.finish(step, int(updates[number]), program.device_count) for number, run in going.items()]
    if failures:
        raise TrainingFailed("; ".join(failures.values()))
    return results


def _advance(chunk: Chunk, state: TrainState) -> tuple[TrainState, Any]:
    """State and metrics after a chunk of steps, computed to the end."""
    return jax.block_until_ready(chunk(state))


def _record(
    runs: Mapping[int, Run],
    program: Program,
    display: Display,
    state: TrainState,
    metrics: Any,
    before: int,
    seconds: float,
) -> dict[int, str]:
    """Record the metrics of a chunk of steps in each run and show the progress; returns why runs failed, by number."""
    for run in runs.values():
        run.check_lock()
    progress, failures = [], {}
    for number, run in runs.items():
        numbers, params = program.metrics(metrics, number), program.live_params(state, number)
        try:
            progress.append(run.record(numbers, params, before, _step(state), seconds))
        except TrainingFailed as error:
            failures[number] = str(error)
            display.say(str(error))
    if progress:
        display.show(mean_progress(progress))
    return failures


def _evaluate(
    runs: Mapping[int, Run], program: Program, state: TrainState, episodes: int, answer: Callable[[], None]
) -> None:
    """Evaluate each run with the parameters that play."""
    for number, run in runs.items():
        run.evaluate(program.play_params(state, number), _step(state), episodes, answer)


def _answer(asked_to_stop: Callable[[], bool], display: Display) -> Callable[[], None]:
    """A function that says once, after a signal, that the run will be saved at the end of the chunk."""
    answered: list[str] = []

    def answer() -> None:
        if asked_to_stop() and not answered:
            answered.append("stopping: the run is saved first; Ctrl-C again ends it at once, without saving")
            display.say(answered[0])

    return answer


def _save(runs: Mapping[int, Run], program: Program, state: TrainState) -> None:
    """Write checkpoints and weights. In every process of a run, since all of them have a part of the state."""
    for number, run in runs.items():
        checkpoint = program.checkpoint(state, number)
        if distributed.is_writer():
            run.save(checkpoint, program.play_params(state, number), program.device_count)


def _step(state: TrainState) -> int:
    """Environment steps so far, of each run."""
    return int(np.max(np.asarray(state.env_steps)))


def resume_command(runs: Sequence[Run]) -> str:
    """The command that goes on with runs."""
    folders = [str(run.folder.path) for run in runs]
    flags = [
        *(["--together"] if len(folders) > 1 else []),
        *(["--distributed"] if jax.process_count() > 1 else []),
        *(["--trust"] if runs[0].config.own_code else []),
    ]
    return shlex.join(["alma", "resume", *folders, *flags])


def _crosses(before: int, after: int, every: int) -> bool:
    return before // every != after // every


def extend(folder: RunFolder, config: RunConfig, steps: int, warn: Callable[[str], None]) -> RunConfig:
    """Raise the number of steps of a run; its `result.json` is deleted, but only if there is a checkpoint to resume."""
    if steps < config.options.steps:
        raise ValueError(f"{folder.path} is set to {config.options.steps:,} steps already: --steps can only raise that")
    if folder.result.exists() and not folder.saved():
        raise ValueError(f"{folder.path} is finished: {folder.how_to_continue}")
    longer = replace(config, options=replace(config.options, steps=steps))
    with folder.locked():
        folder.load(longer, longer.make_trainer().state_like(), warn)
        write_json(folder.config, to_json(longer))
        folder.result.unlink(missing_ok=True)
    return longer
