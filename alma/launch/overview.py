"""Progress of many runs in one table, wherever they are trained; plain lines without a terminal."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from alma.launch.estimate import clock
from alma.launch.job import Job, time_for
from alma.runs.lock import recorded_holder

SHOW_SECONDS = 2.0
"""Time between two looks at the files of runs, which may be on slow storage."""

MOST_ROWS = 30
"""Rows of the table; further runs are counted below it."""


@dataclass(frozen=True)
class Standing:
    """The progress of a run, read from the files in its folder."""

    place: str
    """The host that trains it; empty before training has begun."""
    step: int
    solved: float | None
    """Success rate of the last evaluation."""
    speed: float | None
    """Environment steps per second."""


def standing(job: Job) -> Standing:
    """The progress of a run."""
    lines = job.metrics
    holder = recorded_holder(job.folder.lock)
    return Standing(
        place=holder.host if holder else "",
        step=lines[-1]["step"] if lines else 0,
        solved=_last(lines, "evaluation/success_rate"),
        speed=_last(lines, "steps_per_second"),
    )


def _last(lines: list[dict[str, Any]], name: str) -> float | None:
    return next((line[name] for line in reversed(lines) if name in line), None)


class Overview:
    """Shows all runs that are being trained, and how many are done, waiting and failed."""

    def __init__(self, console: Console, waiting: Iterable[Job] = (), done: int = 0, parallel: int = 1) -> None:
        """`waiting` are the runs to train, as far as they are known, and `done` those that need no training."""
        self.console, self.done, self.failed = console, done, 0
        self.left = {job: job.minutes for job in waiting}
        self.expected = time_for(self.left, parallel)
        self.total = done + len(self.left)
        self.at_first = sum(self.left.values())
        self.began = time.monotonic()
        self.shown = -SHOW_SECONDS
        self.live = Live(console=console, refresh_per_second=2) if console.is_terminal else None

    def __enter__(self) -> "Overview":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def begin(self, job: Job) -> None:
        """A run has been started, or started again."""
        if job not in self.left:
            self.left[job] = job.minutes
            self.at_first += self.left[job]
            self.total += 1
        self._line(f"begin {job.name}")

    def end(self, job: Job, failure: str = "") -> None:
        """A run has ended, with the reason if it failed."""
        if failure:  # its work counts neither as left nor as done
            self.failed += 1
            self.at_first -= self.left[job]
        else:
            self.done += 1
        self.left[job] = 0.0
        self._line(f"end   {job.name}")
        if failure:
            self.say(f"{job.name} failed: {failure}")

    def say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def show(self, working: list[Job], elsewhere: list[Job]) -> None:
        """Draw the table."""
        if self.live is None or time.monotonic() - self.shown < SHOW_SECONDS:
            return
        self.shown = time.monotonic()
        for job in working:
            self.left[job] = job.minutes
        self.live.update(self.table(working, elsewhere))

    def table(self, working: list[Job], elsewhere: list[Job]) -> Group:
        table = Table(box=None, pad_edge=False)
        for column in ("run", "on", "", "steps", "per second", "solved"):
            table.add_column(column, justify="left" if column in ("run", "on", "") else "right", overflow="fold")
        jobs = [*working, *elsewhere]
        for job in jobs[:MOST_ROWS]:
            here = standing(job)
            place = here.place or "starting"
            table.add_row(
                job.name,
                f"{place} (by another command)" if job in elsewhere else place,
                ProgressBar(total=job.config.options.whole_steps, completed=here.step, width=20),
                f"{here.step:,}",
                "" if here.speed is None else f"{here.speed:,.0f}",
                "" if here.solved is None else f"{here.solved:.1%}",
            )
        hidden = f"and {len(jobs) - MOST_ROWS} more; " if len(jobs) > MOST_ROWS else ""
        return Group(table, Text(f"{hidden}{self.summary}"))

    @property
    def summary(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done}/{self.total} runs done{failed}, {self.time_left}"

    @property
    def time_left(self) -> str:
        """Estimated time left, by the speed so far; at the beginning, by the table of training times."""
        left = sum(self.left.values())
        worked, took = self.at_first - left, (time.monotonic() - self.began) / 60
        return f"{clock(left * took / worked if worked > 1 else self.expected)} left"

    def _line(self, text: str) -> None:
        if self.live is None:
            self.say(f"{text} ({self.summary})")
