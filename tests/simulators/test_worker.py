import os
import sys

import pytest
from helpers.simulators import PyDoors

from alma.simulators.memory import SharedFile, memory_shapes, memory_size
from alma.simulators.worker import Order, Setup, Worker

SEATS = [0, 2]


@pytest.fixture
def worker_of():
    """Makes workers in this process, whose simulators have been reset."""
    files = []

    def make(**options):
        files.append(SharedFile(memory_size(memory_shapes(PyDoors().spec, PyDoors.metrics, 3, 1))))
        setup = Setup("helpers.simulators:PyDoors", options, sys.path, os.getpid(), files[-1].path, 3, 1, 0)
        worker = Worker(setup)
        worker.memory.seed[:] = [5, 6, 7]
        assert not worker.carry_out(Order("reset", SEATS)).faults
        return worker

    yield make
    for file in files:
        file.close()


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("nan", "View.entities holds a number that is NaN or infinite"),
        ("infinite reward", "Outcome.reward holds a number that is NaN or infinite"),
        (
            "shape",
            "View.relations has the shape (2, 4); by the spec (2 agents, 4 entities, 2 subtasks, 3 actions) it is "
            "(2, 4, 1)",
        ),
        (
            "agents",
            "View.available has the shape (1, 3); by the spec (2 agents, 4 entities, 2 subtasks, 3 actions) it is "
            "(2, 3)",
        ),
        ("dtype", "View.visible has the dtype int64, and must hold True and False"),
        ("range", "View.target must lie between -1 and 3"),
        ("metrics", "Outcome.metrics tells pulls, and `metrics` of the simulator names pushes"),
        ("pair", "step must return a pair, of a View and an Outcome, not View"),
        ("view", "returned a dict where an alma.View is expected"),
        ("outcome", "returned a float where an alma.Outcome is expected"),
        ("reward", "Outcome.reward must be one number, not [1.0, 2.0]"),
    ],
)
def test_what_the_description_does_not_allow_is_told(worker_of, trouble, told):
    faults = worker_of(trouble=trouble, at=1).carry_out(Order("step", SEATS)).faults
    assert faults[0].seat == 0
    assert faults[0].lasting
    assert faults[0].text == told


def test_an_error_is_told_with_the_lines_of_the_simulator(worker_of):
    worker = worker_of(trouble="raises", at=1)
    faults = worker.carry_out(Order("step", SEATS)).faults
    assert [(fault.seat, fault.lasting) for fault in faults] == [(0, False), (2, False)]
    assert faults[0].text.startswith("raised an error:\nTraceback")
    assert faults[0].text.endswith("RuntimeError: the door is stuck")
    assert "helpers/simulators.py" in faults[0].text
    assert "alma/simulators/worker.py" not in faults[0].text
    assert not worker.carry_out(Order("reset", SEATS)).faults  # by another copy


def test_rows_of_other_seats_stay_as_they_are(worker_of):
    worker = worker_of()
    worker.memory.actions[:] = 1
    worker.memory.reached.entities[1] = 9
    assert not worker.carry_out(Order("advance", SEATS)).faults
    assert (worker.memory.reached.entities[1] == 9).all()
    assert (worker.memory.reached.entities[SEATS, :2, 0] == 1).all()


def test_a_race_counts_copies_and_seconds(worker_of):
    reply = worker_of().carry_out(Order("race", SEATS, steps=20))
    assert reply.copies == 2
    assert reply.seconds > 0
