"""The pool of a simulator's copies in worker processes: it begins and steps episodes.

A state is *lost* if it cannot be stepped: its simulator has gone on from it, or fails in the step, or is gone with its
worker. The episode is then cut off there.
"""

import atexit
import logging
import os
import sys
import threading
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Int, Integer

from alma.simulators.memory import SharedFile, memory_shapes, memory_size, open_memory
from alma.simulators.process import WORKER_VARIABLE, Process, WorkerFailedError
from alma.simulators.seats import EMPTY, Seats
from alma.simulators.worker import GRACE, Command, Fault, Order, Reply, Setup
from alma.task.outcome import Outcome
from alma.task.simulator import Simulator, SimulatorError
from alma.task.view import View

MOST_FAILURES = 5
"""Failures of a worker, without finishing an episode in between, after which a `SimulatorError` is raised."""

logger = logging.getLogger("alma")


@dataclass(frozen=True)
class PoolOptions:
    """Options of a pool: the simulator, the number of its copies, and the worker processes."""

    simulator: str
    """Its class, as `module:Class`."""
    options: tuple[tuple[str, Any], ...]
    workers: int
    seats: int
    """The most copies of the simulator."""
    time_limit: float
    """Seconds after which a call of the simulator counts as hung."""


class Started(NamedTuple):
    """N episodes that have begun or go on."""

    episode: Int[np.ndarray, "N"]
    time: Int[np.ndarray, "N"]
    view: View


class Stepped(NamedTuple):
    """The results of a step of N episodes."""

    reached: View
    """Any view where the state is lost."""
    outcome: Outcome
    """Cut off, without a reward, where the state is lost."""
    lost: Bool[np.ndarray, "N"]

    @property
    def over(self) -> Bool[np.ndarray, "N"]:
        return np.asarray(self.outcome.terminated) | np.asarray(self.outcome.truncated)


class Pool:
    """The copies of a simulator in worker processes, which are started when they are needed."""

    def __init__(self, options: PoolOptions, example: Simulator) -> None:
        if WORKER_VARIABLE in os.environ:
            raise SimulatorError(
                f"the module of {options.simulator} trains or plays when it is imported: put that under "
                "`if __name__ == '__main__':`"
            )
        self.options = options
        shapes = memory_shapes(example.spec, example.metrics, options.seats, options.workers)
        self._file = SharedFile(memory_size(shapes))
        self.memory = open_memory(self._file.path, shapes)
        self.seats = Seats(options.seats)
        self.faults = 0
        """Episodes that were cut off because their simulator or its worker failed."""
        self._failures = [0] * options.workers
        self._processes: dict[int, Process] = {}
        self._lock = threading.Lock()
        _pools.add(self)

    # ---- what tasks ask for

    def start(self, seeds: Integer[np.ndarray, "N"]) -> Started:
        """Begin an episode for each seed."""
        with self._lock:
            return self._start(seeds)

    def step(self, episodes: np.ndarray, times: np.ndarray, actions: np.ndarray) -> Stepped:
        """Step episodes. Those that are over leave their seats."""
        with self._lock:
            seats = self.seats.present(episodes, times)
            stepped = self._step("step", seats, actions)
            self.seats.leave(seats[stepped.over & (seats != EMPTY)])
            return stepped

    def advance(
        self, episodes: np.ndarray, times: np.ndarray, actions: np.ndarray, seeds: np.ndarray
    ) -> tuple[Stepped, Started]:
        """Step episodes; where one is over or lost, another one begins, with the seed. Also returns what goes on."""
        with self._lock:
            seats = self.seats.present(episodes, times)
            known = seats != EMPTY
            self.memory.seed[seats[known]] = seeds[known]
            stepped = self._step("advance", seats, actions)
            now = Started(episodes.copy(), times + 1, jax.tree.map(np.copy, stepped.reached))
            over = stepped.over & ~stepped.lost
            if over.any():
                numbers = self.seats.sit_down(seats[over], seeds[over])
                _put(now, over, Started(numbers, np.zeros_like(numbers), _rows(self.memory.view, seats[over])))
            if stepped.lost.any():
                _put(now, stepped.lost, self._start(seeds[stepped.lost]))
            return stepped, now

    def race(self, copies: int, steps: int) -> float:
        """Steps per second of the simulator itself, played at random by all workers at once, with nothing around it."""
        with self._lock:
            replies, failed = self._give("race", np.arange(copies), steps)
        for number, text in failed.items():
            raise SimulatorError(f"{self.options.simulator}, worker {number}: {text}")
        for fault in (fault for reply in replies.values() for fault in reply.faults):
            raise SimulatorError(self._told(fault))
        return sum(steps * reply.copies / reply.seconds for reply in replies.values())

    # ---- how it is done

    def _start(self, seeds: np.ndarray) -> Started:
        seats = to_do = self.seats.choose(len(seeds))
        while len(to_do):
            self.memory.seed[seats] = seeds
            self.seats.sit_down(to_do, self.memory.seed[to_do])
            self._order("reset", to_do)
            to_do = seats[self.seats.episode[seats] == EMPTY]
        return Started(self.seats.episode[seats], self.seats.time[seats], _rows(self.memory.view, seats))

    def _step(self, what: Command, seats: np.ndarray, actions: np.ndarray) -> Stepped:
        known = seats != EMPTY
        self.memory.actions[seats[known]] = actions[known]
        self._order(what, seats[known])
        lost = ~known | (self.seats.episode[seats] == EMPTY)
        rows = np.where(lost, 0, seats)
        outcome: Outcome = _rows(self.memory.outcome, rows)
        for leaf in jax.tree.leaves(outcome):
            leaf[lost] = 0
        np.asarray(outcome.truncated)[lost] = True
        stepped = Stepped(_rows(self.memory.reached, rows), outcome, lost)
        self.seats.time[seats[~lost]] += 1
        for seat in seats[stepped.over & ~lost]:
            self._failures[seat % self.options.workers] = 0
        return stepped

    def _order(self, what: Command, seats: np.ndarray) -> None:
        """Have the workers do something. Episodes whose simulator fails, or its worker, leave their seats.

        Raises a `SimulatorError` if it is of no use to go on.
        """
        replies, failed = self._give(what, seats)
        faults = [fault for reply in replies.values() for fault in reply.faults]
        for number, text in failed.items():
            faults.append(Fault(int(self.memory.seat[number]), text, lasting=False))
        told = {fault: self._told(fault) for fault in faults}
        occupied = np.flatnonzero(self.seats.episode != EMPTY).tolist()
        for fault in faults:
            if fault.lasting:
                raise SimulatorError(told[fault])
            number = self._worker_of(fault.seat)
            count = sum(self._worker_of(seat) == number for seat in occupied) if number in failed else 1
            lost = "The episode is" if count == 1 else f"All {count} episodes of this worker are"
            logger.warning("%s\n%s cut off.", told[fault], lost)
        gone = {fault.seat for fault in faults} | {seat for seat in occupied if self._worker_of(seat) in failed}
        self.faults += len(gone)
        self.seats.leave(gone)
        for fault in {self._worker_of(fault.seat): fault for fault in faults}.values():
            self._count_failure(self._worker_of(fault.seat), told[fault])

    def _count_failure(self, number: int, text: str) -> None:
        self._failures[number] += 1
        if self._failures[number] >= MOST_FAILURES:
            self._failures[number] = 0
            raise SimulatorError(f"{text}\nThis worker has failed {MOST_FAILURES} times without finishing an episode.")

    def _worker_of(self, seat: int) -> int:
        return seat % self.options.workers

    def _told(self, fault: Fault) -> str:
        """The message of a fault, with simulator, worker, step and seed."""
        name = self.options.simulator
        if fault.seat == EMPTY:
            return f"the simulator {name} cannot be made: {fault.text}"
        seed, time = self.seats.seed[fault.seat], self.seats.time[fault.seat]
        when = f"step {time + 1} of the episode with seed {seed}"
        return f"the simulator {name}, worker {self._worker_of(fault.seat)}, in {when}: {fault.text}"

    def _give(self, what: Command, seats: np.ndarray, steps: int = 0) -> tuple[dict[int, Reply], dict[int, str]]:
        """Give an order to the workers of these seats. Returns their replies, and what became of those that failed."""
        shares: dict[int, list[int]] = {}
        for seat in seats.tolist():
            shares.setdefault(self._worker_of(seat), []).append(seat)
        replies, failed = {}, {}
        try:
            processes = {number: self._process(number) for number in shares}
            for process in processes.values():
                if faults := process.wait_until_ready():
                    raise SimulatorError(self._told(faults[0]))
            for number, process in processes.items():
                process.send(Order(what, shares[number], steps))
            for number, process in processes.items():
                try:
                    replies[number] = process.receive()
                except WorkerFailedError as error:
                    failed[number] = str(error)
        finally:  # also when interrupted, so that no reply is taken for that of a later order
            for number in set(shares) - set(replies):
                self._end(number)
        return replies, failed

    def _process(self, number: int) -> Process:
        """The worker of this number, which is started if there is none."""
        if number not in self._processes:
            options = self.options
            setup = Setup(
                simulator=options.simulator,
                options=dict(options.options),
                python_path=sys.path,
                parent=os.getpid(),
                memory=self._file.path,
                seats=options.seats,
                workers=options.workers,
                number=number,
            )
            self._processes[number] = Process(setup, self.memory.calls, options.time_limit)
        return self._processes[number]

    def _end(self, number: int) -> None:
        if process := self._processes.pop(number, None):
            process.end(patience=0)

    def close(self) -> None:
        """End all workers. They are started anew when they are needed again, but all episodes are lost."""
        with self._lock:
            self.seats.leave(np.flatnonzero(self.seats.episode != EMPTY))
            for process in self._processes.values():
                process.ask_to_end()
            for process in self._processes.values():
                process.end(patience=GRACE)
            self._processes.clear()


def _rows(tree: Any, rows: np.ndarray) -> Any:
    """Copies of some rows of all arrays."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def _put(started: Started, where: np.ndarray, rows: Started) -> None:
    """Overwrite the rows where a mask holds."""
    for leaf, new in zip(jax.tree.leaves(started), jax.tree.leaves(rows), strict=True):
        leaf[where] = new


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_pools):
        pool.close()
