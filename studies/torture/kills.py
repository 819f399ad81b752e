"""Kills: `kill -9` at random moments and inside of saves; every run must end as the one that was left alone."""

import random
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from alma.runs.folder import RunFolder
from torture.runs import differences, ending, finish, is_saving, small, start, wait_until

CHUNKS = 8


@dataclass(frozen=True)
class Subject:
    """A kind of run to kill."""

    name: str
    method: str
    task: str = "save-the-city"
    processes: int = 1
    weight: int = 2
    """Its share of the kills."""


SUBJECTS = (
    Subject("alma", "alma"),
    Subject("flat", "flat"),
    Subject("starcraft", "alma", "starcraft"),
    Subject("two-processes", "alma", processes=2, weight=1),
)


@dataclass
class Tally:
    """What came of the kills of one kind of run."""

    subject: Subject
    kills: int = 0
    in_saves: int = 0
    identical: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[str, ...]:
        counts = (self.kills, self.in_saves, self.identical)
        return (self.subject.name, *map(str, counts), f"{self.seconds:.0f} s")


HEAD = ("run", "kills", "inside a save", "identical ends", "time")


@dataclass
class Kills:
    """Kills runs of one kind, one at a time, and compares their ends with that of a run which was left alone."""

    subject: Subject
    folder: Path
    random: random.Random

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        finish(self._new("first"), self.subject.processes, self._address())  # compiles
        began = time.monotonic()
        run = self._new("reference")
        finish(run, self.subject.processes, self._address())
        self.reference, self.lasts = ending(run), time.monotonic() - began

    def _new(self, name: str) -> RunFolder:
        run = RunFolder(self.folder / name)
        run.create(small(self.subject.method, CHUNKS, task=self.subject.task))
        return run

    def _address(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{free.getsockname()[1]}"

    def torture(self, kills: int, in_saves: int) -> Tally:
        """Kill so many runs, at least so many of them inside of a save."""
        tally, began = Tally(self.subject), time.monotonic()
        while tally.kills < kills:
            run = self._new(f"run-{tally.kills}")
            if (inside := self._kill(run, tally.in_saves < in_saves)) is not None:
                tally.kills += 1
                tally.in_saves += inside
                wrong = self._wrong_end(run)
                print(
                    f"{self.subject.name}: kill {tally.kills}, {tally.in_saves} inside of a save. {wrong}", flush=True
                )
                if wrong:
                    tally.failures.append(wrong)
                    continue  # it stays to be looked at
                tally.identical += 1
            shutil.rmtree(run.path)
        tally.seconds = time.monotonic() - began
        return tally

    def _wrong_end(self, run: RunFolder) -> str:
        """What is wrong with the end of a run that was killed and goes on; empty if it is the same."""
        try:
            finish(run, self.subject.processes, self._address())
        except AssertionError as error:
            return str(error)
        wrong = differences(self.reference, ending(run))
        return f"{run.path} ended with another {', '.join(wrong)}" if wrong else ""

    def _kill(self, run: RunFolder, in_save: bool) -> bool | None:
        """Start a run and kill it; whether that was inside of a save, or None if it ended before."""
        children, began = start(run, self.subject.processes, self._address()), time.monotonic()
        if in_save:
            for _ in range(self.random.randrange(CHUNKS)):  # one of its saves
                wait_until(lambda: is_saving(run) or children[0].ended())
                wait_until(lambda: not is_saving(run) or children[0].ended())
            wait_until(lambda: is_saving(run) or children[0].ended())
            time.sleep(self.random.uniform(0, 0.02))
        else:
            wait_until(children[0].ended, self.random.uniform(0, self.lasts))
        if ended := children[0].ended():
            self.lasts = time.monotonic() - began  # on a busy machine, that changes
        self.random.shuffle(children)  # of several processes, any may be the first to go
        for child in children:
            child.kill()
            time.sleep(0.005 if len(children) > 1 else 0)
        for child in children:
            child.wait()
        return None if ended else is_saving(run)


def torture(folder: Path, kills: int, in_saves: int, seed: int, names: Sequence[str]) -> list[Tally]:
    """Kill runs of the kinds with these names; kills are shared out by their weights."""
    chosen = [subject for subject in SUBJECTS if subject.name in names]
    found = []
    for number, subject in enumerate(chosen):
        share = subject.weight / sum(each.weight for each in chosen)
        each = Kills(subject, folder / f"kills-{number}", random.Random(seed + number))
        found.append(each.torture(round(kills * share), round(in_saves * share)))
    return found
