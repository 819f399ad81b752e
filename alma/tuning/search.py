"""Hyperparameter search with Optuna: a trial is a run with several seeds, and poor ones are stopped early."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from alma.files import read_json, write_json
from alma.launch.job import Job
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.training.options import with_overrides
from alma.training.preset_file import find_preset, is_preset_file, read_preset
from alma.tuning.curve import learning_curve
from alma.tuning.spaces import Choices, Space, is_whole

STARTUP_TRIALS = 5
"""Trials that are drawn at random and never stopped, before others are compared with them."""

WARMUP = 0.2
"""Fraction of training before which no trial is stopped."""

MOST_MISFITS = 100
"""Draws in a row whose options do not go together, after which the space is held to be at fault."""

Metric = Literal["success_rate", "mean_return"]


def require_optuna() -> Any:
    """Import `optuna`. Raises a ValueError that says how to install it if it is missing."""
    try:
        import optuna
    except ImportError:
        raise ValueError("alma tune needs an extra: pip install 'alma-marl[tune]'") from None
    return optuna


@dataclass(frozen=True)
class Search:
    """A hyperparameter search: everything that must stay the same when it is continued."""

    task: str
    task_options: Mapping[str, Any]
    method: str
    preset: str
    """Name of a preset, or a preset file, whose other options stay as they are."""
    seeds: tuple[int, ...]
    metric: Metric
    space: Space
    steps: int | None = None
    """Environment steps of every run. None: those of the preset."""

    def config(self, values: Mapping[str, Any], seed: int) -> RunConfig:
        """The run with these values of what is searched. Raises a ValueError if they do not go together."""
        base, options = find_preset(self.preset, self.task)
        steps = {} if self.steps is None else {"steps": self.steps}
        options = with_overrides(options, {**steps, **values})
        return RunConfig(self.task, dict(self.task_options), self.method, base, seed, options)

    def as_preset(self, values: Mapping[str, Any], about: str) -> dict[str, Any]:
        """The contents of a preset file with these values."""
        start = read_preset(self.preset) if is_preset_file(self.preset) else None
        base, before = (start.preset, start.options) if start else (self.preset, {})
        return {"about": about, "preset": base, "options": {**before, **values}}

    def record(self) -> dict[str, Any]:
        """The search as JSON data."""
        _, options = find_preset(self.preset, self.task)
        return json.loads(json.dumps({**asdict(self), "options": asdict(options)}))


def check_same(search: Search, file: Path) -> None:
    """Write what is searched; raise a ValueError if the file, from an earlier call, says something else."""
    now = search.record()
    if not file.exists():
        write_json(file, now)
        return
    before = read_json(file)
    if changed := sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name)):
        raise ValueError(
            f"{file.parent} holds a search with another {', '.join(changed)}: choose another --out, or undo the change"
        )


def open_study(folder: Path, search: Search, stop_early: bool) -> Any:
    """The study in a folder, new or to be continued. Its storage is a file of JSON lines, which file systems share."""
    optuna = require_optuna()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.journal"))
    steps = search.config({}, search.seeds[0]).options.steps
    pruner = optuna.pruners.MedianPruner(STARTUP_TRIALS, n_warmup_steps=round(WARMUP * steps))
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        sampler=optuna.samplers.TPESampler(n_startup_trials=STARTUP_TRIALS),
        pruner=pruner if stop_early else optuna.pruners.NopPruner(),
        study_name="alma",
        direction="maximize",
        load_if_exists=True,
    )


def distributions(space: Space) -> dict[str, Any]:
    """A space in Optuna's terms."""
    optuna = require_optuna()
    found: dict[str, Any] = {}
    for option, values in space.items():
        if isinstance(values, Choices):
            found[option] = optuna.distributions.CategoricalDistribution(values.values)
        elif is_whole(option):
            found[option] = optuna.distributions.IntDistribution(values.low, values.high, log=values.log)
        else:
            found[option] = optuna.distributions.FloatDistribution(values.low, values.high, log=values.log)
    return found


@dataclass
class OpenTrial:
    """A trial whose runs are being trained."""

    trial: Any
    jobs: list[Job]
    waiting: list[Job]
    """Jobs that were not given out yet."""
    finished: list[Job] = field(default_factory=list)
    judged: int = 0
    """The step up to which its learning curve has been looked at."""
    stopped: bool = False


class Trials:
    """The source of the runs of a search: draws trials, watches their learning curves, and tells Optuna the results."""

    def __init__(self, search: Search, study: Any, trials: int, out: Path) -> None:
        """`trials` are those of earlier calls and this one together."""
        self.search, self.study, self.trials, self.out = search, study, trials, out
        self.optuna = require_optuna()
        states = self.optuna.trial.TrialState
        self.open = [
            # Of an earlier call that was stopped. Optuna has no public way from what it stores to a trial.
            self._open(self.optuna.trial.Trial(study, stored._trial_id), max(stored.intermediate_values, default=0))
            for stored in study.get_trials(states=(states.RUNNING,))
        ]

    def next(self) -> Job | None:
        for entry in self.open:
            if entry.waiting:
                return entry.waiting.pop(0)
        if self._wanted() <= 0:
            return None
        self.open.append(self._draw())
        return self.open[-1].waiting.pop(0)

    def is_over(self) -> bool:
        return not self.open and self._wanted() <= 0

    def stops(self, job: Job) -> bool:
        entry = self._of(job)
        if not entry.stopped:
            entry.stopped = self._falls_behind(entry)
        return entry.stopped

    def ended(self, job: Job, failure: str) -> None:
        entry, states = self._of(job), self.optuna.trial.TrialState
        entry.finished.append(job)
        if failure or entry.stopped:
            entry.stopped = True
            entry.finished += entry.waiting
            entry.waiting.clear()
        if failure:
            entry.trial.set_user_attr("failure", failure)
        if len(entry.finished) < len(entry.jobs):
            return
        self.open.remove(entry)
        if "failure" in entry.trial.user_attrs:
            self.study.tell(entry.trial, state=states.FAIL)
        elif entry.stopped:
            self.study.tell(entry.trial, state=states.PRUNED)
        else:
            self.study.tell(entry.trial, fmean(map(self._score, entry.jobs)))

    def _wanted(self) -> int:
        """Number of trials still to be drawn, not counting draws whose options did not go together."""
        drawn = [trial for trial in self.study.get_trials(deepcopy=False) if "misfit" not in trial.user_attrs]
        return self.trials - len(drawn)

    def _draw(self) -> OpenTrial:
        for _ in range(MOST_MISFITS):
            trial = self.study.ask(distributions(self.search.space))
            try:
                return self._open(trial)
            except ValueError as error:
                trial.set_user_attr("misfit", str(error))
                self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                misfit = error
        raise ValueError(f"no options of the search space go together: {misfit}")

    def _open(self, trial: Any, judged: int = 0) -> OpenTrial:
        """A trial with its runs. Raises a ValueError if its options do not go together."""
        configs = {seed: self.search.config(trial.params, seed) for seed in self.search.seeds}
        jobs = [
            Job(RunFolder(self.out / "runs" / f"trial-{trial.number:04d}-{seed}"), config)
            for seed, config in configs.items()
        ]
        return OpenTrial(trial, jobs, list(jobs), judged=judged)

    def _of(self, job: Job) -> OpenTrial:
        return next(entry for entry in self.open if job in entry.jobs)

    def _falls_behind(self, entry: OpenTrial) -> bool:
        """Whether the learning curve of a trial, the mean over the seeds that are being trained, is a poor one."""
        started = [job for job in entry.jobs if job not in entry.waiting]
        curves = [learning_curve(job, self.search.metric) for job in started]
        common = set.intersection(*(set(curve) for curve in curves))
        last = entry.jobs[0].config.options.steps
        for step in sorted(step for step in common if entry.judged < step < last):
            entry.trial.report(fmean(curve[step] for curve in curves), step)
            entry.judged = step
            if entry.trial.should_prune():
                return True
        return False

    def _score(self, job: Job) -> float:
        return job.folder.read_result()["evaluation"][self.search.metric]
