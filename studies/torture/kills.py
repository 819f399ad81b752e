"""Kills: `kill -9` at random moments and inside of saves; every run must end as the one that was left alone."""

import random
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alma.runs.folder import RunFolder
from torture.runs import differences, ending, finish, is_saving, small, start, wait_until

CHUNKS = 8


@dataclass(frozen=True)
class Subject:
    """A kind of run to kill."""

    name: str
    method: str
    processes: int = 1


SUBJECTS = (Subject("alma", "alma"), Subject("flat", "flat"), Subject("alma, 2 processes", "alma", 2))


@dataclass
class Tally:
    """What came of the kills of one kind of run."""

    subject: Subject
    kills: int = 0
    in_saves: int = 0
    identical: int = 0
    seconds: float = 0.0

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
        self.reference, self.lasts = self._reference()

    def _reference(self) -> tuple[dict[str, Any], float]:
        """The end of a run that was left alone, and how long one lasts when its programs are compiled."""
        for name in ("first", "reference"):
            run = self._new(name)
            began = time.monotonic()
            finish(run, self.subject.processes, self._address())
            lasts = time.monotonic() - began
        return ending(run), lasts

    def _new(self, name: str) -> RunFolder:
        run = RunFolder(self.folder / name)
        run.create(small(self.subject.method, CHUNKS))
        return run

    def _address(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{free.getsockname()[1]}"

    def torture(self, kills: int, in_saves: int) -> Tally:
        """Kill so many runs, at least so many of them inside of a save."""
        tally, began = Tally(self.subject), time.monotonic()
        while tally.kills < kills:
            aim = tally.in_saves < in_saves
            run = self._new(f"run-{tally.kills}")
            if (inside := self._kill(run, aim)) is not None:
                tally.kills += 1
                tally.in_saves += inside
                finish(run, self.subject.processes, self._address())
                if wrong := differences(self.reference, ending(run)):
                    raise AssertionError(f"{run.path} ended with another {', '.join(wrong)}")
                tally.identical += 1
            shutil.rmtree(run.path)
        tally.seconds = time.monotonic() - began
        return tally

    def _kill(self, run: RunFolder, in_save: bool) -> bool | None:
        """Start a run and kill it; whether that was inside of a save, or None if it ended before."""
        children = start(run, self.subject.processes, self._address())
        if in_save:
            for _ in range(self.random.randrange(CHUNKS)):  # one of its saves
                wait_until(lambda: is_saving(run) or children[0].ended())
                wait_until(lambda: not is_saving(run) or children[0].ended())
            wait_until(lambda: is_saving(run) or children[0].ended())
            time.sleep(self.random.uniform(0, 0.02))
        else:
            time.sleep(self.random.uniform(0, self.lasts))
        ended = children[0].ended()
        self.random.shuffle(children)  # of several processes, any may be the first to go
        for child in children:
            child.kill()
            time.sleep(0.005 if len(children) > 1 else 0)
        for child in children:
            child.wait()
        return None if ended else is_saving(run)


def torture(
    folder: Path, kills: int, in_saves: int, seed: int, subjects: tuple[Subject, ...] = SUBJECTS
) -> list[Tally]:
    """Kill runs of every kind; kills are shared out, and those in two processes are a fifth."""
    shares = {1: 0.4, 2: 0.2} if len(subjects) == 3 else {1: 1 / len(subjects)}
    found = []
    for number, subject in enumerate(subjects):
        share = shares[subject.processes]
        each = Kills(subject, folder / f"kills-{number}", random.Random(seed + number))
        found.append(each.torture(round(kills * share), round(in_saves * share)))
    return found
