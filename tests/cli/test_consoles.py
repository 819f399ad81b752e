"""Output that gets lost."""

import errno

import pytest
from rich.table import Table

from alma.cli.consoles import LossyConsole, make_console


class Broken:
    """A stream that cannot be written to."""

    encoding = "utf-8"

    def __init__(self, number):
        self.number = number

    def write(self, text):
        raise OSError(self.number, "lost")  # a BrokenPipeError for EPIPE

    flush = isatty = lambda self: False


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_remarks_can_be_done_without(number):
    console = LossyConsole(stderr=True, file=Broken(number))
    console.print("a remark")
    print("a remark", file=console.file, flush=True)


def test_results_that_nobody_reads_are_no_mistake():
    LossyConsole(file=Broken(errno.EPIPE)).print("a result")


def test_results_that_cannot_be_written_are_one():
    with pytest.raises(OSError, match="lost"):
        LossyConsole(file=Broken(errno.ENOSPC)).print("a result")


def test_names_are_no_markup(capsys):
    make_console().print("runs/[/b]x", ":smile:", Table("[/b]", title="[/b]"))
    printed = capsys.readouterr().out
    assert printed.startswith("runs/[/b]x :smile:")
    assert printed.count("[/b]") == 3
