"""Training a run in a process of its own, on the machine where this is called."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from alma.launch import child
from alma.launch.cores import reserved_cores
from alma.launch.job import Job
from alma.runs.folder import RunFolder
from alma.runs.lock import living_holder, recorded_holder

FORWARDED = ("ALMA_", "JAX_", "XLA_")
"""Environment variables with these beginnings go with a run to other machines."""

LOOK_SECONDS = 0.2


def start_process(
    folder: RunFolder,
    arguments: Iterable[str],
    cores: Collection[int],
    environment: Mapping[str, str],
    where: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Start or resume a run on these cores, with these arguments; its output is appended to its log.

    It has a session of its own, so that Ctrl-C does not reach it directly; it saves and ends if this process dies.
    Files in the working directory that are named like modules of Python are not imported by it (`-P`).
    """
    words = [sys.executable, "-I", child.__file__, str(os.getpid()), ",".join(map(str, sorted(cores)))]
    words += [sys.executable, "-P", "-m", "alma", "resume", str(folder.path.resolve()), "--quiet", *arguments]
    with folder.log.open("ab") as log:
        return subprocess.Popen(
            words,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **environment},
            cwd=where,
        )


@dataclass(frozen=True)
class Order:
    """An order to train a run, for a worker on another machine that sees the same folders."""

    folder: str
    """Path of the run folder, the same on all machines."""
    arguments: tuple[str, ...]
    """Further arguments of `alma resume`."""
    cores: int
    environment: Mapping[str, str] = field(
        default_factory=lambda: {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
    )
    where: str = field(default_factory=os.getcwd)
    """The working directory, in which a task or method of the user's own may be."""

    @classmethod
    def for_job(cls, job: Job, cores: int) -> "Order":
        return cls(str(job.folder.path.resolve()), job.resume_arguments, cores)

    def carry_out(self) -> int:
        """Train the run to its end in a child process, and return that one's exit status.

        Whatever interrupts this makes the run save and end first.
        """
        folder = RunFolder(Path(self.folder))
        if not folder.config.exists():
            raise FileNotFoundError(
                f"there is no run in {folder.path} on {socket.gethostname()}: --out must be on storage that all "
                "machines share"
            )
        if folder.result.exists():
            return 0
        where = Path(self.where)
        with reserved_cores(self.cores) as cores:
            process = start_process(folder, self.arguments, cores, self.environment, where if where.is_dir() else None)
            try:
                while process.poll() is None:
                    time.sleep(LOOK_SECONDS)
            finally:
                process.terminate()
                process.wait()
        return process.returncode

    def interrupt(self) -> None:
        """Have the run saved that `carry_out` trains on this machine; returns when it is.

        For signal handlers: it knows the process by its lock alone, since `carry_out` may be in the middle of anything.
        """
        lock = RunFolder(Path(self.folder)).lock
        holder = recorded_holder(lock)
        if holder is None or holder.host != socket.gethostname():
            return
        with suppress(ProcessLookupError):
            os.kill(holder.process, signal.SIGTERM)
        while living_holder(lock) == holder:
            time.sleep(LOOK_SECONDS)
