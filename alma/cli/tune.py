"""`alma tune`: hyperparameter search."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from alma.cli.arguments import PresetOrFile, Switch, parse_seeds, parse_setting
from alma.cli.check import check_own_tasks
from alma.cli.consoles import console, messages
from alma.cli.launching import LaunchOptions
from alma.cli.mirrors import FLAT
from alma.files import write_json
from alma.launch.launcher import Launcher
from alma.launch.overview import Overview
from alma.runs.lock import locked
from alma.runs.loop import TrainingFailed
from alma.tuning.search import Metric, Search, Trials, check_same, open_study, require_optuna
from alma.tuning.spaces import find_space

SHOWN_TRIALS = 5


@dataclass(frozen=True)
class Tune:
    """Search for hyperparameters with Optuna, and write the best ones as a preset file for `alma train --preset`.

    Stop it at any time: the same command goes on, and a larger --trials adds trials.
    """

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """Name of the task (`alma tasks` lists them), or your own as module:Class."""
    trials: int = 40
    """Total number of trials, those of earlier calls included."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """Option of the task, such as --set agents=3; may be repeated."""
    method: str = "alma"
    """Method to train (`alma methods` lists them), or your own as module:NAME."""
    preset: PresetOrFile = "fast"
    """Preset for the options that are not searched, by its name or as a file."""
    seeds: str = "0..2"
    """Seeds of every trial, over which results are averaged: `0..2`, or `1,5,7`."""
    steps: int | None = None
    """Environment steps of every run. If not given, those of the preset."""
    space: str | None = None
    """What to search: `actors`, `allocator`, `both`, or a file (.toml, .json). If not given: both levels, or the actors
    alone if the method's allocator does not learn."""
    metric: Metric = "success_rate"
    """Metric of the last evaluation to maximise: success rate or mean return."""
    no_pruning: Switch = False
    """Train all trials to the end. Otherwise those are stopped whose learning curve is below the median of others."""
    out: Path = Path("tune")
    """Folder of the results: runs in OUT/runs, Optuna's study in OUT/study.journal, the best trial in OUT/best.json."""
    launch: Annotated[LaunchOptions, FLAT] = field(default_factory=LaunchOptions)
    """Where runs are trained, and the resources of each."""

    def run(self) -> None:
        require_optuna()
        if self.trials < 1:
            raise ValueError(f"trials must be at least 1, not {self.trials}")
        if self.launch.engine == "slurm" and self.launch.jobs is None:
            raise ValueError("say with --jobs how many runs to submit at a time: trials learn from earlier ones")
        search = self.search()
        first = search.config({}, search.seeds[0])
        if not self.out.exists():
            check_own_tasks([first])  # complains before anything is written
        first.make_trainer()  # so does this
        self.out.mkdir(parents=True, exist_ok=True)
        with locked(self.out / "lock"):
            check_same(search, self.out / "search.json")
            study = open_study(self.out, search, not self.no_pruning)
            source = Trials(search, study, self.trials, self.out)
            overview = Overview(messages, parallel=self.launch.parallel)
            failed = Launcher(source, self.launch.make(self.out), overview).run()
            self._write_best(search, study)
        console.print(trials_table(study, list(search.space)))
        if failed:
            raise TrainingFailed("; ".join(failed))

    def search(self) -> Search:
        """The search that the arguments ask for."""
        settings = dict(map(parse_setting, self.set))
        search = Search(
            self.task,
            settings,
            self.method,
            self.preset,
            tuple(parse_seeds(self.seeds)),
            self.metric,
            find_space(self.space or "actors"),
            self.steps,
        )
        learns = search.config({}, 0).make_team().allocator.learns
        if self.space is None and learns:
            return Search(**{**vars(search), "space": find_space("both")})
        if self.space in ("allocator", "both") and not learns:
            raise ValueError(f"the allocator of {self.method} does not learn: search --space actors")
        return search

    def _write_best(self, search: Search, study: Any) -> None:
        finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
        if not finished:
            return
        best = study.best_trial
        about = (
            f"Best of {len(study.trials)} trials on {self.task} with {self.method}: trial {best.number}, "
            f"{self.metric} {best.value:.4f}, the mean over seeds {self.seeds}"
        )
        file = self.out / "best.json"
        write_json(file, search.as_preset(best.params, about))
        console.print(f"{about}; train with it: alma train {self.task} --preset {file}", soft_wrap=True)


def trials_table(study: Any, options: list[str]) -> Table:
    """The best trials, and how many there are of each kind."""
    states = [trial.state.name for trial in study.trials]
    counts = ", ".join(f"{states.count(name)} {name.lower()}" for name in dict.fromkeys(states))
    table = Table(caption=f"{len(states)} trials: {counts}")
    for column in ("trial", "value", *options):
        table.add_column(column, justify="right", overflow="fold")
    finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    for trial in sorted(finished, key=lambda trial: -trial.value)[:SHOWN_TRIALS]:
        values = [trial.params[option] for option in options]
        shown = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
        table.add_row(str(trial.number), f"{trial.value:.3f}", *shown)
    return table
