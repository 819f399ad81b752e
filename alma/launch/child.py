"""Starts a program on given cores, and ends it with its parent: `python child.py PARENT CORE,... PROGRAM ARGUMENT...`.

It is a program of its own, since cores are counted when JAX is imported, and it imports nothing of alma.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, cores, *command = sys.argv[1:]
    if cores and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # cores only affect speed and rounding
            os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    if hasattr(signal, "SIGUSR2"):
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # until training handles it: it would end the process unsaved
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # it survives the change of program
        if os.getppid() != int(parent):  # died before that
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
