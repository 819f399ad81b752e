"""Displays of a run's progress: live on a terminal, line by line elsewhere."""

import time
from dataclasses import dataclass, replace
from statistics import fmean
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

COMPILING = "compiling (about 30 s the first time)"
"""Message until there is progress to show."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    step: int
    """Environment steps so far."""
    total: int
    """Environment steps to train for."""
    seconds: float
    """Training time, without compilation and evaluation."""
    steps_per_second: float
    metrics: dict[str, float]
    evaluations: list[dict[str, Any]]
    """Summaries of all evaluations so far."""


def mean_progress(runs: list[Progress]) -> Progress:
    """The progress of runs that are trained together: their mean metrics and success rates."""
    if len(runs) == 1:
        return runs[0]
    metrics = {name: fmean(run.metrics[name] for run in runs if name in run.metrics) for name in runs[0].metrics}
    rates = [
        {"success_rate": fmean(entry["success_rate"] for entry in entries)}
        for entries in zip(*(run.evaluations for run in runs), strict=True)
    ]
    return replace(runs[0], metrics=metrics, evaluations=rates)


@runtime_checkable
class Display(Protocol):
    """Shows messages and the progress of a run."""

    def say(self, text: str) -> None:
        """Show a message."""

    def show(self, progress: Progress) -> None:
        """Update the progress shown."""


BARS = "▁▂▃▄▅▆▇█"


def spark_line(values: list[float], width: int = 40) -> str:
    """A sparkline: values from 0 to 1 as a row of bars, the latest last."""
    return "".join(BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values[-width:])


def duration(seconds: float) -> str:
    """Seconds formatted as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def time_left(progress: Progress) -> float:
    """Estimated seconds left, at the mean speed so far."""
    return max(progress.total - progress.step, 0) * progress.seconds / max(progress.step, 1)


class LiveDisplay:
    """A display on a terminal that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Bar(
            BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("steps  {task.fields[note]}"), console=console
        )
        self.task = self.bar.add_task("", total=None, note="compiling")
        self.live = Live(self.bar, console=console, refresh_per_second=4)

    def __enter__(self) -> "LiveDisplay":
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.live.stop()

    def say(self, text: str) -> None:
        self.console.print(text, style="dim")

    def show(self, progress: Progress) -> None:
        note = f"{progress.steps_per_second:,.0f}/s  {duration(time_left(progress))} left"
        self.bar.update(self.task, completed=min(progress.step, progress.total), total=progress.total, note=note)
        self.live.update(Group(self.bar, self._success(progress), self._metrics(progress)))

    @staticmethod
    def _success(progress: Progress) -> Text:
        rates = [entry["success_rate"] for entry in progress.evaluations]
        if not rates:
            return Text("solved  not evaluated yet")
        return Text(f"solved  {rates[-1]:6.1%}  {spark_line(rates)}", style="bold green")

    @staticmethod
    def _metrics(progress: Progress) -> Table:
        table = Table.grid(padding=(0, 3))
        cells = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in progress.metrics.items()]
        for first in range(0, len(cells), 4):
            table.add_row(*cells[first : first + 4])
        return table


class LineDisplay:
    """A display that prints a line every `every` seconds, for logs and pipes."""

    def __init__(self, console: Console, every: float = 15.0) -> None:
        self.console = console
        self.every = every
        self.shown = -every
        self.evaluations = 0

    def __enter__(self) -> "LineDisplay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str) -> None:
        print(text, file=self.console.file, flush=True)

    def show(self, progress: Progress) -> None:
        news = len(progress.evaluations) > self.evaluations
        if not news and time.monotonic() - self.shown < self.every:
            return
        self.shown, self.evaluations = time.monotonic(), len(progress.evaluations)
        solved = (
            f"solved {progress.evaluations[-1]['success_rate']:.1%}" if progress.evaluations else "not evaluated yet"
        )
        losses = [f"{name} {value:.3g}" for name, value in progress.metrics.items() if name.endswith("_loss")]
        rest = f", {' '.join(losses)}" if losses else ""
        self.say(
            f"{progress.step:,}/{progress.total:,} steps, {duration(progress.seconds)} trained, "
            f"{duration(time_left(progress))} left, {progress.steps_per_second:,.0f}/s, {solved}{rest}"
        )


class NoDisplay:
    """A display that shows nothing, as of the processes of a distributed run that write no files."""

    def say(self, text: str) -> None:
        pass

    def show(self, progress: Progress) -> None:
        pass


def make_display(console: Console, quiet: bool = False) -> LiveDisplay | LineDisplay:
    """A live display on a terminal, lines elsewhere or if `quiet`."""
    return LineDisplay(console) if quiet or not console.is_terminal else LiveDisplay(console)
