"""A worker process as the main process sees it: started, given orders, and ended."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection

import numpy as np

from alma.simulators.worker import GRACE, Fault, Order, Reply, Setup

WORKER_VARIABLE = "ALMA_SIMULATOR_WORKER"
"""Set in worker processes, which must not start workers of their own."""

START_LIMIT = 120.0
"""Seconds that a worker may take to import the simulator."""

GLANCE = 0.2
"""Seconds between two looks at whether a worker is alive."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers share the processor: libraries of theirs should not each take all of it."""


class WorkerFailedError(Exception):
    """A worker has died, or does not return."""


class Process:
    """A worker process. It is ready for orders once it has imported the simulator."""

    def __init__(self, setup: Setup, calls: np.ndarray, time_limit: float) -> None:
        self.setup, self.time_limit = setup, time_limit
        self._calls = calls[setup.number : setup.number + 1]
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        with theirs:
            self._process = _starter().submit(_start, theirs.fileno()).result()
        self._connection.send(setup)
        self._is_ready = False

    def wait_until_ready(self) -> list[Fault]:
        """Wait until the simulator has been imported; returns what is wrong if it cannot be."""
        faults = [] if self._is_ready else self._receive(START_LIMIT).faults
        self._is_ready = not faults
        return faults

    def send(self, order: Order) -> None:
        with suppress(OSError):  # it has died: `receive` will tell
            self._connection.send(order)

    def receive(self) -> Reply:
        """Wait for what came of an order. Raises a `WorkerFailedError` if that does not come."""
        return self._receive(self.time_limit)

    def _receive(self, limit: float) -> Reply:
        calls, since = int(self._calls[0]), time.monotonic()
        while not self._connection.poll(GLANCE):
            if self._process.poll() is not None and not self._connection.poll(0):
                raise WorkerFailedError(self._how_it_ended())
            if int(self._calls[0]) != calls:
                calls, since = int(self._calls[0]), time.monotonic()
            elif time.monotonic() - since > limit:
                raise WorkerFailedError(f"has not returned for {limit:g} seconds")
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
            raise WorkerFailedError(self._how_it_ended()) from None

    def _how_it_ended(self) -> str:
        code = self._process.returncode
        if code is None:
            return "closed its connection"
        return f"died (signal {-code}, {signal.Signals(-code).name})" if code < 0 else f"ended (exit code {code})"

    def ask_to_end(self) -> None:
        """Let the worker close its simulators and end."""
        self._connection.close()

    def end(self, patience: float) -> None:
        """Wait for the worker to end, and end it by force if it does not; with everything it has started."""
        with suppress(OSError):
            self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@cache
def _starter() -> ThreadPoolExecutor:
    """A thread that starts all workers, and stays: on Linux, processes are told of the end of the thread that started
    them, not of the end of its process."""
    return ThreadPoolExecutor(1, "alma-simulators")


def _start(handle: int) -> subprocess.Popen:
    environment = {**dict.fromkeys(ONE_THREAD, "1"), "JAX_PLATFORMS": "cpu", **os.environ}
    environment |= {WORKER_VARIABLE: "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # Not with -m: what is sent must be of the classes of the module, not of those of a program of the same text.
    command = [sys.executable, "-c", "from alma.simulators.worker import main; main()", str(handle)]
    # A session of its own: Ctrl-C in a terminal is for the main process, which ends the workers.
    return subprocess.Popen(command, pass_fds=[handle], env=environment, start_new_session=True)
