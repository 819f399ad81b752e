"""The interface of engines, which start `alma resume FOLDER --quiet` on some machine and report its status."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from alma.launch.job import Job


@dataclass(frozen=True)
class Status:
    """The status of a run that an engine has started."""

    phase: Literal["alive", "ended", "lost"]
    """`alive`: it waits for a place, or trains; `ended`: the process has ended by itself; `lost`: the process or the
    machine has died under it, and the run can be started again elsewhere."""
    code: int = 0
    """Exit status of a process that has ended."""
    reason: str = ""
    """Why it was lost, or why it failed if its log does not say so."""


ALIVE = Status("alive")


@runtime_checkable
class Attempt(Protocol):
    """A run that an engine has started."""

    def status(self) -> Status:
        """Its present status."""

    def stop(self) -> None:
        """Ask the run to save and end. It may take a while."""


@runtime_checkable
class Engine(Protocol):
    """Starts runs on some machine. A context manager: connects when it is entered."""

    def __enter__(self) -> "Engine": ...

    def __exit__(self, *_: object) -> None: ...

    def has_room(self) -> bool:
        """Whether another run can be started now."""

    def start(self, job: Job) -> Attempt:
        """Train a run whose folder exists, from where it stands."""


def of_process(code: int) -> Status:
    """The status of an attempt whose process has ended, with this exit status.

    A process that was killed, or asked to stop by somebody else than us, is lost: such as by a lack of memory, or by
    the batch system.
    """
    if code < 0:
        return Status("lost", code, f"its process was killed by signal {-code}")
    if code == STOPPED:
        return Status("lost", code, "its process was asked to stop")
    return Status("ended", code)


STOPPED = 130
"""Exit status of `alma resume` after a signal; everything is saved."""
