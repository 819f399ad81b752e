"""`alma reproduce`: the figures of the paper."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from alma.cli.arguments import Switch, parse_seeds
from alma.cli.consoles import console, messages
from alma.cli.launching import LaunchOptions, plan_table
from alma.cli.mirrors import FLAT
from alma.launch.launcher import train_all
from alma.reproduce.figures import Figure, find_figures
from alma.reproduce.plots import check_plots
from alma.reproduce.running import Budget, plan
from alma.reproduce.scores import curves_of, score_all
from alma.reproduce.writing import missing, write_figure
from alma.runs.loop import TrainingFailed

PUBLISHED = Path(__file__).parents[2] / "results"
"""The folder of the published runs, which come with the source code. There is none where only the package is."""


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a figure of the paper: train its runs, evaluate them, write pictures, tables and data.

    Finished runs are kept and interrupted ones resumed: stop it and call it again at any time.
    """

    figure: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FIGURE")]
    """Figure to reproduce: `save-the-city`, `starcraft`, `save-the-city-minutes`, `starcraft-minutes`, `spread`,
    `spread-each`, `spread-minutes`, `sizes`, `transplant`, `transplant-save-the-city`, `robustness`, `architecture`,
    `ablations`, or `all`."""
    preset: Literal["fast", "faithful", "paper", "tiny"] = "fast"
    """Preset of training options for all runs."""
    seeds: str | None = None
    """Seeds of every method: `0..4`, or `1,5,7`. If not given, those of the figure."""
    steps: int | None = None
    """Environment steps of every run. If not given, those of the preset."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="METHOD [METHOD ...]")] = ()
    """Restrict the figure to these methods."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING [SETTING ...]")] = ()
    """Restrict the figure to these settings, such as `sz-disadvantage`."""
    out: Path = Path("results")
    """Folder of the results: runs in OUT/runs, which figures share, the figure in OUT/FIGURE (OUT/FIGURE-PRESET unless
    the preset is fast)."""
    dry_run: Switch = False
    """Print what would be run and how long it would take, and stop."""
    no_train: Switch = False
    """Use only runs that are finished; train nothing."""
    no_plots: Switch = False
    """Write tables and data, but no pictures."""
    launch: Annotated[LaunchOptions, FLAT] = field(default_factory=LaunchOptions)
    """Where runs are trained, and the resources of each."""

    def run(self) -> None:
        if self.out.exists() and not self.out.is_dir():
            raise ValueError(f"{self.out} is a file: choose a folder with --out")
        figures = self._figures()
        seeds = None if self.seeds is None else tuple(parse_seeds(self.seeds))
        budget = Budget(self.preset, seeds, self.steps)
        shown = self._folder_of_runs()
        runs = plan(figures, budget, shown)
        for run in runs:
            run.check()
        if self.dry_run:
            console.print(plan_table(runs, self.launch.parallel))
            return
        if not self.no_plots:
            check_plots()
        if published := sum(run.state == "published" for run in runs):
            messages.print(
                f"{published} of {len(runs)} runs are published ones, shown as they are and without weights to play; "
                "with another --out they are trained anew",
                soft_wrap=True,
            )
        failed = [] if self.no_train else train_all(runs, self.launch.make(self.out), messages)
        written = [self._write(figure, budget, shown) for figure in figures]
        if failed:
            raise TrainingFailed("; ".join(failed))
        if not any(written):
            raise ValueError(f"nothing to show: none of the runs is finished in {shown / 'runs'}")

    def _folder_of_runs(self) -> Path:
        """The folder whose runs are shown: with --no-train, that of the published ones if there are none in OUT."""
        if not self.no_train or (self.out / "runs").exists() or not (PUBLISHED / "runs").exists():
            return self.out
        messages.print(f"there are no runs in {self.out}: showing the published ones, of {PUBLISHED}", soft_wrap=True)
        return PUBLISHED

    def _figures(self) -> list[Figure]:
        """The figures to write; with `all`, only those that the preset and the number of steps allow."""
        found = find_figures(self.figure, self.methods, self.settings)
        misfits = {figure.name: figure.misfit(self.preset, self.steps) for figure in found}
        if self.figure != "all" or all(misfits.values()):
            return found
        for misfit in filter(None, misfits.values()):
            messages.print(f"left out: {misfit}", soft_wrap=True)
        return [figure for figure in found if not misfits[figure.name]]

    def _write(self, figure: Figure, budget: Budget, shown: Path) -> bool:
        """Evaluate the finished runs and write the figure. Without any, write nothing and keep an earlier one."""
        scores = score_all(figure, budget, shown, messages)
        if not scores:
            messages.print(f"{figure.name}: none of its runs is finished; nothing is written")
            return False
        curves = curves_of(figure, budget, shown)
        files = write_figure(
            figure,
            budget,
            scores,
            curves,
            self.out,
            runs_in=shown / "runs",
            command=self._command(figure),
            plots=not self.no_plots,
        )
        absent = missing(figure, budget, scores)
        without = f" ({len(absent)} points are missing: see summary.json)" if absent else ""
        names = ", ".join(file.name for file in files)
        console.print(f"{figure.name}: {names} in {files[0].parent}{without}", soft_wrap=True)
        return True

    def _command(self, figure: Figure) -> str:
        """The command that writes the same figure."""
        words = ["alma", "reproduce", figure.name]
        words += ["--preset", self.preset] if self.preset != "fast" else []
        words += ["--seeds", self.seeds] if self.seeds is not None else []
        words += ["--steps", str(self.steps)] if self.steps is not None else []
        words += ["--methods", *self.methods] if self.methods else []
        words += ["--settings", *self.settings] if self.settings else []
        return " ".join(words)
