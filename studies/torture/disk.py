"""A full disk, at every single write of a run: nothing that was there is lost, and with room again the run goes on."""

import builtins
import errno
import io
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alma.runs.folder import RunFolder
from torture.runs import differences, ending, small, train_in

CHUNKS = 3

HEAD = ("disk", "runs that met it full", "went on to the same end", "failures", "time")


@dataclass
class Tally:
    """What came of runs whose disk was full."""

    name: str
    met: int = 0
    identical: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[str, ...]:
        counts = (self.met, self.identical, len(self.failures))
        return (self.name, *map(str, counts), f"{self.seconds:.0f} s")


# ---- a disk that is made to look full


@dataclass
class Disk:
    """Counts writes; all from a certain one on find the disk full."""

    full_from: float = float("inf")
    writes: int = 0

    def write(self) -> None:
        self.writes += 1
        if self.writes >= self.full_from:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class MeteredFile(io.FileIO):
    """A file whose writes go by a `Disk`."""

    disk: Disk

    def write(self, data: Any) -> int:
        self.disk.write()
        return super().write(data)


@contextmanager
def metered(folder: Path, disk: Disk) -> Iterator[None]:
    """Context manager in which all writing to files below a folder goes by a `Disk`."""
    real_open, real_io_open, real_write = builtins.open, io.open, os.write

    def metered_open(
        file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **more: Any
    ) -> Any:
        reads_only = "r" in mode and "+" not in mode
        if isinstance(file, int) or "opener" in more or reads_only or folder not in Path(file).absolute().parents:
            return real_open(file, mode, buffering, encoding, *rest, **more)
        raw = MeteredFile(file, mode.replace("b", "").replace("t", ""))
        raw.disk = disk
        binary = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return binary if "b" in mode else io.TextIOWrapper(binary, encoding or "utf-8")

    def metered_write(file: int, data: Any) -> int:
        if file > 2:
            disk.write()
        return real_write(file, data)

    builtins.open = io.open = metered_open  # type: ignore[assignment]
    os.write = metered_write  # type: ignore[assignment]
    try:
        yield
    finally:
        builtins.open, io.open, os.write = real_open, real_io_open, real_write


def torture(folder: Path, most: int) -> Tally:
    """Run into a full disk at every write of a run; if there are more than `most`, at so many of them."""
    folder.mkdir(parents=True)
    tally, began = Tally("full from the n-th write on"), time.monotonic()
    disk = Disk()
    reference = RunFolder(folder / "reference")
    with metered(folder, disk):
        _begin(reference)
    same = ending(reference)
    step = max(1, -(-disk.writes // most))
    for number in range(1, disk.writes + 1, step):
        _meet(RunFolder(folder / "run"), Disk(number), same, tally)
    tally.seconds = time.monotonic() - began
    return tally


def _begin(run: RunFolder) -> None:
    """What `alma train` does: begin, also where a run came to nothing; or what `alma resume` does."""
    if not run.saved():
        run.create(small("alma", CHUNKS))
    train_in(run)


def _meet(run: RunFolder, disk: Disk, same: dict[str, Any], tally: Tally) -> None:
    """A run that meets a full disk, and goes on when there is room again."""
    try:
        with metered(run.path.parent, disk):
            _begin(run)
    except OSError as error:
        tally.met += 1
        if str(run.path) not in str(error):
            tally.failures.append(f"write {disk.full_from}: its message names no file: {error}")
        _go_on(run, same, tally, f"write {disk.full_from}")
    shutil.rmtree(run.path, ignore_errors=True)


def _go_on(run: RunFolder, same: dict[str, Any], tally: Tally, where: str) -> None:
    try:
        if run.result.exists():
            raise AssertionError("it failed after its end")
        _begin(run)
    except (ValueError, OSError, AssertionError) as error:
        tally.failures.append(f"{where}: it does not go on: {error}")
        return
    if wrong := differences(same, ending(run)):
        tally.failures.append(f"{where}: it ended with another {', '.join(wrong)}")
    else:
        tally.identical += 1


# ---- a disk that is full


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path | None]:
    """Context manager that mounts a file system in memory; None if this user or this machine cannot."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def torture_real(folder: Path, times: int) -> Tally | None:
    """Run on a file system in memory with more and more room, until it fits; None if none can be mounted."""
    tally, began = Tally("a file system of 8 MB with too little room"), time.monotonic()
    reference = RunFolder(folder / "reference")
    _begin(reference)
    same = ending(reference)
    needed = sum(file.stat().st_size for file in reference.path.rglob("*") if file.is_file())
    with small_disk(folder / "disk", 8) as disk:
        if disk is None:
            return None
        for number in range(times):
            room = round(needed * (number + 0.5) / times)
            ballast, run = disk / "ballast", RunFolder(disk / "run")
            ballast.write_bytes(bytes(shutil.disk_usage(disk).free - room))
            try:
                _begin(run)
            except OSError as error:
                tally.met += 1
                if str(run.path) not in str(error):
                    tally.failures.append(f"{room} bytes: its message names no file: {error}")
                ballast.unlink()
                _go_on(run, same, tally, f"{room} bytes")
            ballast.unlink(missing_ok=True)
            shutil.rmtree(run.path, ignore_errors=True)
    tally.seconds = time.monotonic() - began
    return tally
