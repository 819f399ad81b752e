"""A worker process: it holds the simulators of some of the seats, and does what the main process asks of them.

`main` is run as a program, with the handle of its end of a connection as argument.
"""

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from alma.simulators.memory import memory_shapes, open_memory
from alma.simulators.writing import BreachError, OutcomeWriter, ViewWriter
from alma.task.importing import import_by_name
from alma.task.simulator import Simulator
from alma.task.view import View

PR_SET_PDEATHSIG = 1

GRACE = 5.0
"""Seconds that simulators have to close when the main process has died."""


class Setup(NamedTuple):
    """The first message to a worker: the simulator, its options, and the shared memory."""

    simulator: str
    """Its class, as `module:Class`."""
    options: dict[str, Any]
    python_path: list[str]
    parent: int
    """The main process."""
    memory: str
    """The path of the shared file."""
    seats: int
    workers: int
    number: int
    """The number of this worker."""


Command: TypeAlias = Literal["reset", "step", "advance", "race"]
"""`advance`: step, and reset where the episode is over. `race`: play at random, to measure the simulator's speed."""


class Order(NamedTuple):
    """A command for some of the worker's seats."""

    what: Command
    seats: list[int]
    steps: int = 0
    """For a race: steps on each seat."""


class Fault(NamedTuple):
    """An error of the simulator on a seat."""

    seat: int
    text: str
    lasting: bool
    """Whether every episode would fail like this, since the simulator does not fit its description."""


class Reply(NamedTuple):
    """A worker's reply to an order."""

    faults: list[Fault]
    copies: int = 0
    """For a race: the number of copies that took part."""
    seconds: float = 0.0
    """For a race: the time spent in the simulators."""


class Worker:
    """The simulators of a worker, by seat."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.kind: type[Simulator] = import_by_name("simulator", setup.simulator)
        self.simulators: dict[int, Simulator] = {}
        example = self.kind(**setup.options)
        self.spec, metrics = example.spec, example.metrics
        self.memory = open_memory(setup.memory, memory_shapes(self.spec, metrics, setup.seats, setup.workers))
        self.reached = ViewWriter(self.spec, self.memory.reached)
        self.first = ViewWriter(self.spec, self.memory.view)
        self.outcome = OutcomeWriter(self.spec, self.memory)

    def carry_out(self, order: Order) -> Reply:
        if order.what == "race":
            return Reply([], len(order.seats), self._race(order))
        faults = {}
        for seat in order.seats:
            self.memory.seat[self.setup.number] = seat
            try:
                self._play(order.what, seat)
            except BreachError as error:
                faults[seat] = Fault(seat, str(error), lasting=True)
            except Exception as error:
                faults[seat] = Fault(seat, _without_our_frames(error), lasting=False)
                self.close(seat)
        played = [seat for seat in order.seats if seat not in faults]
        for seat, text in self._finish(order.what, played) if played else ():
            faults[seat] = Fault(seat, text, lasting=True)
        return Reply(list(faults.values()))

    def _play(self, what: Command, seat: int) -> None:
        if what == "reset":
            self._reset(seat)
            return
        self._count_call()
        result = self.simulators[seat].step(self.memory.actions[seat].copy())
        if not isinstance(result, tuple) or len(result) != 2:
            raise BreachError(f"step must return a pair, of a View and an Outcome, not {type(result).__name__}")
        view, outcome = result
        self.reached.write(seat, view)
        if self.outcome.write(seat, outcome) and what == "advance":
            self._reset(seat)

    def _reset(self, seat: int) -> None:
        self._count_call()
        if seat not in self.simulators:
            self.simulators[seat] = self.kind(**self.setup.options)
        view = self.simulators[seat].reset(int(self.memory.seed[seat]))
        self.first.write(seat, view)

    def _count_call(self) -> None:
        self.memory.calls[self.setup.number] += 1

    def _finish(self, what: Command, seats: list[int]) -> list[tuple[int, str]]:
        """Check what has been written; returns seats with wrong values, and what is wrong."""
        if what == "reset":
            return list(self.first.finish(seats))
        over = [seat for seat in seats if self.memory.outcome.terminated[seat] or self.memory.outcome.truncated[seat]]
        begun = self.first.finish(over) if what == "advance" and over else ()
        return [*self.reached.finish(seats), *self.outcome.finish(seats), *begun]

    def _race(self, order: Order) -> float:
        """Play at random without the wrapper; returns the seconds spent in the simulators."""
        random, seconds = np.random.default_rng(self.setup.number), 0.0
        for _ in order.seats:
            began = time.perf_counter()
            simulator = self.kind(**self.setup.options)
            view = simulator.reset(int(random.integers(2**31)))
            seconds += time.perf_counter() - began
            for _ in range(order.steps):
                self._count_call()
                actions = _random_actions(random, view)
                began = time.perf_counter()
                view, outcome = simulator.step(actions)
                if outcome.terminated or outcome.truncated:
                    view = simulator.reset(int(random.integers(2**31)))
                seconds += time.perf_counter() - began
            simulator.close()
        return seconds

    def close(self, seat: int) -> None:
        with suppress(Exception):
            self.simulators.pop(seat).close()


def _random_actions(random: np.random.Generator, view: View) -> np.ndarray:
    """An available action for every agent; 0 for those that have none."""
    return np.argmax(random.random(view.available.shape) * view.available, axis=1).astype(np.int32)


def _without_our_frames(error: Exception) -> str:
    """The traceback of an error in a simulator, from the simulator on."""
    frames = theirs = error.__traceback__
    while frames is not None:
        if frames.tb_frame.f_code.co_filename == __file__:
            theirs = frames.tb_next
        frames = frames.tb_next
    return "raised an error:\n" + "".join(traceback.format_exception(error.with_traceback(theirs))).rstrip()


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    setup: Setup = connection.recv()
    _end_with(setup.parent)
    sys.path[:] = setup.python_path
    try:
        worker = Worker(setup)
    except Exception as error:
        connection.send(Reply([Fault(-1, _without_our_frames(error), lasting=True)]))
        return
    connection.send(Reply([]))
    try:
        _serve(worker, connection)
    finally:
        for seat in list(worker.simulators):
            worker.close(seat)


def _serve(worker: Worker, connection: Connection) -> None:
    """Carry out orders until the main process closes the connection."""
    while True:
        try:
            order: Order = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(worker.carry_out(order))


def _end_with(parent: int) -> None:
    """End this process when the main process does, however that happens: first by asking, then without asking."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        time.sleep(GRACE)
        os.killpg(os.getpgrp(), signal.SIGKILL)  # with everything that a simulator has started

    threading.Thread(target=watch, daemon=True).start()
