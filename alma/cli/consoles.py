"""Where commands print: results to standard output, progress and remarks to standard error."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from rich.console import Console
from rich.text import Text


class Lossy:
    """A stream that may get lost, as when the program that reads it ends or a terminal is closed: what is written then
    goes nowhere."""

    def __init__(self, stream: IO[str], accepted: type[OSError]) -> None:
        """`accepted` is the error that tells of the loss; others are raised."""
        self._stream, self._accepted = stream, accepted

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except self._accepted:
            return len(text)

    def flush(self) -> None:
        with suppress(self._accepted):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LossyConsole(Console):
    """A console whose output may get lost without ending the program. A run is worth more than its display."""

    @property
    def file(self) -> Any:
        # What is not shown can be done without, whatever the reason; but a result that cannot be written to a full disk
        # is an error.
        return Lossy(super().file, OSError if self.stderr else BrokenPipeError)

    @file.setter
    def file(self, new_file: Any) -> None:
        self._file = new_file


def make_console(stderr: bool = False) -> Console:
    """A console that breaks lines on a terminal only: what is written to files and other programs has whole lines.

    Texts are printed as they are: names of runs and tasks may have brackets and colons, which rich reads as markup.
    """
    made = LossyConsole(stderr=stderr, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 10_000
    return made


console = make_console()

messages = make_console(stderr=True)
"""Progress and remarks go here, so that standard output stays clean for results."""


@contextmanager
def busy(text: str) -> Iterator[None]:
    """Context manager that says what takes a while: on a terminal until it is done, elsewhere in a line."""
    if not messages.is_terminal:
        messages.print(text)
        yield
        return
    with messages.status(Text(text)):
        yield
