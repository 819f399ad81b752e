"""The loop of a run: train, evaluate, log and save checkpoints until done or stopped."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import jax
import numpy as np

from alma.files import write_json
from alma.learning.learner import Metrics
from alma.play.episodes import play_episodes
from alma.play.summary import summarise
from alma.runs import runtime
from alma.runs.config import RunConfig, check_unedited, learning_config, to_json
from alma.runs.folder import RunFolder
from alma.runs.metrics import MetricAccumulator
from alma.runs.policy import WEIGHTS, Policy, fingerprint
from alma.runs.progress import Display, Progress
from alma.runs.signals import Interrupted, stop_on_signal
from alma.runs.sinks import JsonLines, Sink, TensorBoard, Wandb
from alma.training.trainer import Trainer, TrainState, compile_chunk

Compiled = Callable[[TrainState], tuple[TrainState, Metrics]]
"""`Trainer.chunk`, compiled."""


class TrainingFailed(ValueError):  # noqa: N818
    """Training cannot continue: a loss or a parameter is not finite any more."""


@dataclass
class Run:
    """A run that is being trained, in its folder."""

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
        self.metrics = MetricAccumulator()

    def train(self) -> dict[str, Any]:
        """Train to the end, or from the last checkpoint on; returns the contents of `result.json`.

        Raises `Interrupted` if a signal asked the run to stop; everything is saved then.
        """
        options = self.config.options
        if self.folder.result.exists():
            raise ValueError(f"{self.folder.path} is finished: {self.folder.how_to_continue}, or see its result.json")
        with self.folder.locked(), stop_on_signal() as asked_to_stop:
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
        """The initial or loaded train state, and the compiled loop. Not counted as training time."""
        began = time.monotonic()
        state = self._begin()
        compiled = compile_chunk(self.trainer, self.config.options.updates_per_chunk)
        self.display.say(f"compiled in {time.monotonic() - began:.1f} s")
        return state, compiled

    def _begin(self) -> TrainState:
        self.folder.check_resumable()
        self.folder.checkpoints.mkdir(exist_ok=True)
        self.folder.delete_unfinished()
        loaded = self.folder.load(self.trainer.state_like(), self.display.say)
        if loaded is None:
            return self.trainer.init(jax.random.key(self.config.seed))
        state, notes = loaded
        check_unedited(self.config, notes["config"], self.folder.config)
        self.seconds, self.evaluations = notes["seconds"], notes["evaluations"]
        self.metrics = MetricAccumulator(**notes["metrics"])
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
            state, metrics = jax.block_until_ready(compiled(state))
            took = time.monotonic() - began
            before, step = step, int(state.env_steps)
            self.seconds += took
            self.rate = (step - before) / took
            numbers = {name: float(value) for name, value in metrics.items()}
            # Losses were computed before the last update; only the parameters show whether it went wrong.
            self._check_finite({**numbers, **_parameters(state)}, step)
            self.metrics.add(numbers, step - before)
            shown = self._shown(step)
            self.display.show(Progress(step, options.steps, self.seconds, self.rate, shown, self.evaluations))
            if _crosses(before, step, report.log_every):
                self._write(step, {**shown, "steps_per_second": self.rate})
                self.metrics = MetricAccumulator()
            last = step >= options.steps
            if last or _crosses(before, step, report.evaluate_every):
                self._evaluate(state, step, report.final_episodes if last else report.episodes)
            stop = asked_to_stop()
            if last or stop or time.monotonic() - saved_at > 60 * report.checkpoint_minutes:
                self._save(state)
                saved_at = time.monotonic()
            if stop and not last:
                raise Interrupted(f"stopped at step {step:,}; go on with: alma resume {self.folder.path}")
        return state

    def _save(self, state: TrainState) -> None:
        policy = Policy(self.config, self.trainer.play_params(state))
        notes = {
            "config": learning_config(self.config),
            "seconds": self.seconds,
            "evaluations": self.evaluations,
            "metrics": vars(self.metrics),
        }
        self.folder.save(state, policy, notes)

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

    def _evaluate(self, state: TrainState, step: int, episodes: int) -> None:
        """Evaluate without exploration. Episodes depend only on seed and step, so that resuming changes nothing."""
        seed = (self.config.seed * 1_000_003 + step) % 2**31
        trainer = self.trainer
        results = play_episodes(trainer.task, trainer.team, trainer.play_params(state), episodes, seed)
        summary = {"step": step, "minutes": self.seconds / 60, **summarise(results)}
        self.evaluations = [*self.evaluations, summary]
        flat = {f"evaluation/{name}": value for name, value in summary.items() if name not in ("step", "minutes")}
        self._write(step, flat)

    def _write(self, step: int, metrics: dict[str, Any]) -> None:
        for sink in self.sinks:
            sink.write(step, {"minutes": round(self.seconds / 60, 4), **metrics})


def _parameters(state: TrainState) -> dict[str, float]:
    """The largest absolute parameter of each level, which is not finite if any parameter is not."""
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
    """Raise the number of steps of a run; its `result.json` is deleted, but only if there is a checkpoint to resume."""
    if steps < config.options.steps:
        raise ValueError(f"{folder.path} is set to {config.options.steps:,} steps already: --steps can only raise that")
    if folder.result.exists() and not folder.saved():
        raise ValueError(f"{folder.path} is finished: {folder.how_to_continue}")
    longer = replace(config, options=replace(config.options, steps=steps))
    with folder.locked():
        folder.load(longer.make_trainer().state_like(), warn)
        write_json(folder.config, to_json(longer))
        folder.result.unlink(missing_ok=True)
    return longer
