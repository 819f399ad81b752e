"""`alma sweep`: every combination of options, methods, task settings and seeds."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from alma.cli.arguments import PRESETS_OR_FILE, PresetOrFile, Switch, parse_seeds, parse_setting
from alma.cli.check import check_own_tasks
from alma.cli.consoles import console, messages
from alma.cli.launching import LaunchOptions, plan_table
from alma.cli.mirrors import FLAT
from alma.launch.launcher import train_all
from alma.reproduce.writing import write_csv
from alma.runs.loop import TrainingFailed
from alma.training.preset_file import is_preset_file
from alma.tuning.results import SweepResult, records_of, results_of
from alma.tuning.sweep import Sweep, read_sweep


@dataclass(frozen=True)
class SweepRuns:
    """Train every combination of options, methods, task settings and seeds, each in a folder of its own.

    Finished runs are kept and interrupted ones resumed: stop it and call it again at any time.
    """

    what: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK|FILE")]
    """Name of the task, or a file (.toml, .json) that says what to sweep, with some of the entries task, methods,
    seeds, preset, steps, set, options, grid and variants."""
    vary: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE,...")] = ()
    """Option to sweep and its values, such as --vary actors.n_step=1,3,5, or --vary set.agents=2,3 for an option of the
    task; may be repeated, for all combinations."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="METHOD [METHOD ...]")] = ()
    """Methods to train (`alma methods` lists them). If not given: alma."""
    seeds: str | None = None
    """Seeds of every combination: `0..4`, or `1,5,7`. If not given: 0."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """Option of the task for all runs, such as --set agents=3; may be repeated."""
    preset: Annotated[PresetOrFile | None, PRESETS_OR_FILE] = None
    """Preset that options start from, by its name or as a file. If not given: fast."""
    steps: int | None = None
    """Environment steps of every run. If not given, those of the preset."""
    out: Path = Path("sweep")
    """Folder of the results: runs in OUT/runs, and OUT/sweep.csv with a line for each."""
    dry_run: Switch = False
    """Print what would be run and how long it would take, and stop."""
    trust: Switch = False
    """Import the task and methods that FILE names as module:Name: for files of people you trust."""
    launch: Annotated[LaunchOptions, FLAT] = field(default_factory=LaunchOptions)
    """Where runs are trained, and the resources of each."""

    def run(self) -> None:
        runs = self.sweep().runs(self.out)
        jobs = [run.job for run in runs]
        for job in jobs:  # complains before anything is written
            job.check()
        check_own_tasks(job.config for job in jobs if job.state == "new")
        for job in jobs:
            job.config.make_trainer()
        if self.dry_run:
            console.print(plan_table(jobs, self.launch.parallel))
            return
        failed = train_all(jobs, self.launch.make(self.out), messages)
        console.print(sweep_table(results_of(runs)))
        if records := records_of(runs):
            write_csv(self.out / "sweep.csv", records)
        if failed:
            raise TrainingFailed("; ".join(failed))

    def sweep(self) -> Sweep:
        """The sweep in the file or on the task, with the changes that flags make."""
        base = read_sweep(Path(self.what), self.trust) if is_preset_file(self.what) else Sweep(self.what)
        changes: dict[str, Any] = {
            "methods": self.methods or None,
            "seeds": None if self.seeds is None else tuple(parse_seeds(self.seeds)),
            "preset": self.preset,
            "steps": self.steps,
            "set": {**base.set, **dict(map(parse_setting, self.set))},
            "grid": {**base.grid, **dict(map(parse_values, self.vary))},
        }
        return replace(base, **{name: value for name, value in changes.items() if value is not None})


def parse_values(setting: str) -> tuple[str, tuple[Any, ...]]:
    """Split `name=value,value,...`; each value is written as for `--set`, so that 2..5 is a pair."""
    name, _, text = setting.partition("=")
    if not name or not text:
        raise ValueError(f"write values to sweep as OPTION=VALUE,VALUE,..., not {setting!r}")
    return name, tuple(parse_setting(f"{name}={part}")[1] for part in text.split(","))


def sweep_table(results: Iterable[SweepResult]) -> Table:
    """A table of the results of a sweep."""
    table = Table(caption="solved: mean over seeds, with its 95 % interval")
    for column in ("setting", "method", "options", "seeds", "minutes", "solved", "return"):
        names = column in ("setting", "method", "options")
        table.add_column(column, justify="left" if names else "right", overflow="fold")
    for row in results:
        cells = (row.setting, row.method, row.options, ", ".join(map(str, row.seeds)), f"{row.minutes:.1f}")
        table.add_row(*cells, str(row.solved), f"{row.mean_return:.2f}")
    return table
