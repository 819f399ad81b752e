"""`alma compare`: learning curves and final results of any runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.table import Table

from alma.cli.arguments import Switch
from alma.cli.consoles import console
from alma.reproduce.comparing import check_out, compare
from alma.reproduce.plots import check_plots
from alma.reproduce.rows import Row


@dataclass(frozen=True)
class Compare:
    """Compare runs: print final success rates with intervals, and write learning curves, tables and data.

    Runs that differ in nothing but the seed belong together. Each run plays 512 greedy episodes.
    """

    runs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")]
    """Run folders, or folders that hold some. NAME=FOLDER names the runs of a folder."""
    reference: str | None = None
    """Label of the runs that others are compared with. If not given, that of the first run."""
    over: Literal["steps", "minutes"] = "steps"
    """Draw learning curves over environment steps, or over minutes of training."""
    out: Path = Path("comparison")
    """Folder for the results; an earlier comparison there is replaced."""
    no_plots: Switch = False
    """Write tables and data, but no pictures."""
    trust: Switch = False
    """Import tasks and methods that runs name as module:Name, to play them: for runs of people you trust."""

    def run(self) -> None:
        check_out(self.out)
        if not self.no_plots:
            check_plots()
        comparison = compare(self.runs, reference=self.reference, over=self.over, trust=self.trust)
        files = comparison.write(self.out, plots=not self.no_plots)
        for panel in dict.fromkeys(row.panel for row in comparison.rows):
            console.print(panel_table(panel, [row for row in comparison.rows if row.panel == panel]))
        console.print(f"{', '.join(file.name for file in files)} in {self.out}", soft_wrap=True)


def panel_table(panel: str, rows: list[Row]) -> Table:
    """The final results of all runs of a task."""
    table = Table(title=panel, title_justify="left")
    for column in ("runs", "seeds", "steps", "minutes", "solved (95 % interval)", "return"):
        table.add_column(column, justify="left" if column == "runs" else "right", overflow="fold")
    for row in rows:
        cells = (str(len(row.seeds)), f"{row.steps:,}", f"{row.minutes:.1f}", str(row.solved), f"{row.mean_return:.2f}")
        table.add_row(row.label, *cells)
    return table
