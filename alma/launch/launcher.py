"""Training many runs with one engine: failed runs are reported, dead ones restarted, none is trained twice at once."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from rich.console import Console

from alma.launch.engine import Attempt, Engine, Status
from alma.launch.job import Job
from alma.launch.overview import Overview
from alma.runs.lock import living_holder
from alma.runs.signals import Interrupted, stop_on_signal

POLL_SECONDS = 0.5
"""Time between looks at the runs."""

MOST_RESTARTS = 3
"""Restarts without a new checkpoint in between after which a run whose process dies counts as failed."""


@runtime_checkable
class Source(Protocol):
    """Gives out the runs to train, and is told how each of them ends."""

    def next(self) -> Job | None:
        """The run to start next; None if there is nothing to start now."""

    def is_over(self) -> bool:
        """Whether no further run will come once those that were given out have ended."""

    def stops(self, job: Job) -> bool:
        """Whether to stop a run that is being trained before its end."""

    def ended(self, job: Job, failure: str) -> None:
        """A run has ended, with the reason if it failed."""


@dataclass
class Listed:
    """A source of given runs, in their order."""

    waiting: list[Job]

    def next(self) -> Job | None:
        return self.waiting.pop(0) if self.waiting else None

    def is_over(self) -> bool:
        return not self.waiting

    def stops(self, job: Job) -> bool:
        return False

    def ended(self, job: Job, failure: str) -> None:
        pass


def train_all(jobs: Iterable[Job], engine: Engine, console: Console) -> list[str]:
    """Train all unfinished runs, and show them in one table; returns the names of failed runs and why.

    Raises `Interrupted` if asked to stop: the runs save checkpoints, and the next call goes on with them.
    """
    jobs = list(jobs)
    for job in jobs:
        job.check()
    waiting = [job for job in jobs if not job.done]
    return Launcher(Listed(list(waiting)), engine, Overview(console, waiting, len(jobs) - len(waiting))).run()


@dataclass
class Work:
    """A run that is being trained."""

    job: Job
    attempt: Attempt
    stopping: bool = False


class Launcher:
    """Trains the runs of a source with an engine."""

    def __init__(self, source: Source, engine: Engine, overview: Overview) -> None:
        self.source, self.engine, self.overview = source, engine, overview
        self.working: list[Work] = []
        self.again: list[Job] = []
        """Runs that died, to be started again."""
        self.elsewhere: list[Job] = []
        """Runs that another launcher is training."""
        self.restarts: dict[Job, tuple[int, Path | None]] = {}
        """How often a run was started again, and its newest checkpoint then."""
        self.failed: list[str] = []

    def run(self) -> list[str]:
        """Train all runs; returns the names of failed runs and why."""
        with stop_on_signal() as asked_to_stop, self.engine, self.overview:
            try:
                while not self._is_over():
                    if asked_to_stop():
                        self._stop()
                    while self.engine.has_room() and (job := self._next()):
                        self._start(job)
                    for work in list(self.working):
                        self._look_at(work)
                    self.overview.show([work.job for work in self.working], self.elsewhere)
                    time.sleep(POLL_SECONDS)
            finally:  # in any case, no run is left alone
                self._end_all()
        return self.failed

    def _is_over(self) -> bool:
        return not (self.working or self.again or self.elsewhere) and self.source.is_over()

    def _next(self) -> Job | None:
        """The next run that nobody trains."""
        for job in self.elsewhere:
            if living_holder(job.folder.lock) is None:
                self.elsewhere.remove(job)
                return job
        return self.again.pop(0) if self.again else self.source.next()

    def _start(self, job: Job) -> None:
        if job.done:
            self._finish(job)
        elif holder := living_holder(job.folder.lock):
            self.overview.say(f"{job.name} is being trained by {holder}: waiting for it")
            self.elsewhere.append(job)
        else:
            job.check()  # its process will trust what the folder names
            if job.state == "new":
                job.folder.create(job.config)
            self.overview.begin(job)
            self.working.append(Work(job, self.engine.start(job)))

    def _look_at(self, work: Work) -> None:
        """See what has become of a run."""
        job, status = work.job, work.attempt.status()
        if status.phase == "alive":
            if not work.stopping and self.source.stops(job):
                work.attempt.stop()
                work.stopping = True
            return
        self.working.remove(work)
        if job.done or status == Status("ended") or work.stopping:
            self._finish(job)
        elif living_holder(job.folder.lock):  # another launcher was faster, or what is lost is still saving
            self.elsewhere.append(job)
        elif status.phase == "lost" and self._may_restart(job):
            self.overview.say(f"{job.name}: {status.reason}; it is started again from its last checkpoint")
            self.again.append(job)
        else:
            self._finish(job, status.reason or job.last_words())

    def _may_restart(self, job: Job) -> bool:
        """Whether to start a run again that has died: if it does so time and again without progress, it has failed."""
        newest = next(iter(job.folder.saved()), None)
        count, before = self.restarts.get(job, (0, None))
        count = count + 1 if newest == before else 1
        self.restarts[job] = (count, newest)
        return count <= MOST_RESTARTS

    def _finish(self, job: Job, failure: str = "") -> None:
        self.overview.end(job, failure)
        if failure:
            self.failed.append(f"{job.name}: {failure}")
        self.source.ended(job, failure)

    def _stop(self) -> None:
        """Raise `Interrupted`; runs save when they are ended."""
        self.overview.say(f"stopping: {len(self.working)} runs save where they are")
        words = ["stopped; everything is saved: the same command goes on from here", *self.failed]
        raise Interrupted("; failed: ".join(words))

    def _end_all(self) -> None:
        for work in self.working:
            work.attempt.stop()
        while any(work.attempt.status().phase == "alive" for work in self.working):
            time.sleep(POLL_SECONDS)
