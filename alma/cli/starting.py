"""Handling of Ctrl-C and of closed streams while the package is imported; the package imports this module first.

Importing takes a second or more, in which Python would answer with a long traceback, and some libraries would swallow
the interrupt.
"""

import itertools
import os
import signal
import sys

INTERRUPTED = 130
"""The exit status of a program that was ended by Ctrl-C."""


def is_command_line() -> bool:
    """Whether this process was started as `alma` or as `python -m alma`."""
    program = (sys.argv or [""])[0]
    name = os.path.splitext(os.path.basename(program))[0]
    return name == "alma" or (program == "-m" and ("-m", "alma") in itertools.pairwise(sys.orig_argv))


def answer_ctrl_c() -> None:
    """From now on, Ctrl-C ends the process at once. For the time in which there is nothing to save or to clean up."""
    signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: object) -> None:
    os.write(2, b"alma: stopped before anything was begun\n")
    os._exit(INTERRUPTED)


def open_standard_streams() -> None:
    """Let standard streams that were closed by whoever started this process lead nowhere.

    Otherwise files that are opened later take their numbers, and what libraries print goes into those files.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


if is_command_line():
    answer_ctrl_c()
    open_standard_streams()
