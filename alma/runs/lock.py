"""The lock of a run folder: one process at a time trains in it, on whatever host.

The kernel's lock of the file (`flock`) dies with its process, but on network file systems it may hold on one host only.
So the file also says which process on which host has the lock, and its time of modification is a heartbeat.
"""

import json
import os
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from alma.files import naming

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None  # type: ignore[assignment]

HEARTBEAT_SECONDS = 10.0

STALE_SECONDS = 60.0
"""A lock of another host without a heartbeat for so long is taken over."""

SETTLE_SECONDS = 1.0
"""Time after which two hosts that take over a lock at once see the same holder."""

TRIES, TRY_SECONDS = 5, 0.1
"""Attempts to get the kernel's lock, which somebody may hold for a moment only to look who trains."""

RECORD_BYTES = 256
"""The record has a fixed size, so that it is replaced in one write and never seen half written."""


class FolderInUseError(ValueError):
    """Another process trains in the folder."""


@dataclass(frozen=True)
class Holder:
    """The process that has a lock."""

    host: str
    process: int
    token: str
    """Tells processes apart that have the same number at different times."""

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


@dataclass(frozen=True)
class Lock:
    """A lock that this process has."""

    path: Path
    holder: Holder

    def check(self) -> None:
        """Raise an error if another host has taken the lock over, as after this process was suspended for minutes."""
        now = recorded_holder(self.path)
        if now != self.holder:
            raise FolderInUseError(f"{self.path.parent} was taken over by {now or 'somebody'}: this process stops")

    def beat(self) -> None:
        """Show that this process is alive, unless another one has the lock."""
        if recorded_holder(self.path) == self.holder:
            os.utime(self.path)


@contextmanager
def locked(path: Path, say: Callable[[str], None] = lambda text: None) -> Iterator[Lock]:
    """Context manager that holds the lock at `path`; `say` is told if it is taken over from a process that died.

    Raises a FolderInUseError if another process has it.
    """
    with _opened(path) as file:
        if not _try_kernel_lock(file):
            raise FolderInUseError(f"{path.parent} is being trained by {recorded_holder(path) or 'another process'}")
        lock = _take(path, file, say)
        ended = threading.Event()
        heart = threading.Thread(target=_beat_until, args=(ended, lock), daemon=True)
        heart.start()
        try:
            yield lock
        finally:
            ended.set()
            heart.join()
            if recorded_holder(path) == lock.holder:
                with suppress(OSError):  # then it names a process that is dead
                    _write(file, {})


def living_holder(path: Path) -> Holder | None:
    """The living process that has the lock at `path`; None if there is none."""
    if not path.exists():
        return None
    with _opened(path) as file:
        if not _try_kernel_lock(file, tries=1):
            return recorded_holder(path) or Holder("this host", 0, "")
    found = recorded_holder(path)
    return found if found and _may_live(path, found) else None


def recorded_holder(path: Path) -> Holder | None:
    """The process that the lock at `path` names, dead or alive; None if it was released."""
    try:
        found = Holder(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return found if (type(found.host), type(found.process)) == (str, int) else None


def _take(path: Path, file: int, say: Callable[[str], None]) -> Lock:
    """Write ourselves into a lock that the kernel has given us."""
    before = recorded_holder(path)
    if before and _may_live(path, before):
        raise FolderInUseError(f"{path.parent} is being trained by {before}")
    silence = _silence(path)
    lock = Lock(path, Holder(socket.gethostname(), os.getpid(), uuid.uuid4().hex))
    with naming(path):
        _write(file, asdict(lock.holder))
    if before:
        say(f"taking over the lock of {before}, which has died: its last sign of life was {silence:.0f} s ago")
        if before.host != lock.holder.host:  # another host may be doing the same
            time.sleep(SETTLE_SECONDS)
            lock.check()
    return lock


def _may_live(path: Path, holder: Holder) -> bool:
    """Whether the holder may be alive although the kernel gives the lock away: on another host, by its heartbeat."""
    if fcntl and holder.host == socket.gethostname():
        return False
    return _silence(path) < STALE_SECONDS


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Not where a link leads: in a folder from somebody else, that may be any file.
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        yield file
    finally:
        os.close(file)


def _try_kernel_lock(file: int, tries: int = TRIES) -> bool:
    """Get the kernel's lock if nobody has it; it dies with the process or when the file is closed."""
    if fcntl is None:
        return True
    for attempt in range(tries):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < tries:
                time.sleep(TRY_SECONDS)
        else:
            return True
    return False


def _write(file: int, record: dict[str, Any]) -> None:
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, json.dumps(record).encode().ljust(RECORD_BYTES - 1) + b"\n")


def _silence(path: Path) -> float:
    """Seconds since the last heartbeat, by the clock of the file system: those of hosts may differ."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="lock.") as now:
        return os.stat(now.name).st_mtime - os.stat(path).st_mtime


def _beat_until(ended: threading.Event, lock: Lock) -> None:
    while not ended.wait(HEARTBEAT_SECONDS):
        with suppress(OSError):  # the file system may be away for a while
            lock.beat()
