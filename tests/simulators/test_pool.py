import logging
import os
import re
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from helpers.simulators import PyDoors

import alma
from alma.simulators.host_task import HostTask
from alma.simulators.pool import MOST_FAILURES

SEEDS = np.arange(4)


@pytest.fixture
def pool_of():
    """Makes pools, whose workers are ended after the test."""
    tasks = []

    def make(workers=1, time_limit=60.0, **options):
        tasks.append(HostTask(PyDoors, options, workers=workers, time_limit=time_limit))
        return tasks[-1].pool

    yield make
    for task in tasks:
        task.close()


def push(view):
    """Every agent pushes the first door that is closed."""
    return np.tile(np.argmax(view.active, axis=1)[:, None] + 1, (1, view.available.shape[1])).astype(np.int32)


def step(pool, now):
    return pool.step(now.episode, now.time, push(now.view))


def advance(pool, now):
    return pool.advance(now.episode, now.time, push(now.view), SEEDS + 100)


def rows_equal(tree, row, other):
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    return all(np.allclose(leaf[row], value) for leaf, value in pairs)


def test_it_plays_what_the_simulator_plays(pool_of):
    """Step by step, with new episodes where one is over, on two workers."""
    pool = pool_of(workers=2)
    copies, seeds = [PyDoors() for _ in SEEDS], SEEDS
    now = pool.start(seeds)
    views = [copy.reset(int(seed)) for copy, seed in zip(copies, seeds, strict=True)]
    for _ in range(6):
        assert all(rows_equal(now.view, row, view) for row, view in enumerate(views))
        stepped, after = advance(pool, now)
        for row, copy in enumerate(copies):
            view, outcome = copy.step(push(now.view)[row])
            assert rows_equal(stepped.reached, row, view)
            assert rows_equal(stepped.outcome, row, outcome)
            views[row] = copy.reset(100 + row) if outcome.terminated or outcome.truncated else view
        assert not stepped.lost.any()
        assert ((after.episode == now.episode) == ~stepped.over).all()
        assert (after.time == np.where(stepped.over, 0, now.time + 1)).all()
        now = after


def test_an_episode_that_is_over_cannot_go_on(pool_of):
    pool = pool_of()
    now = pool.start(SEEDS)
    over = np.zeros(len(SEEDS), bool)
    for _ in range(6):
        stepped = step(pool, now)
        assert (stepped.lost == over).all()
        assert stepped.outcome.truncated[over].all()
        assert not stepped.outcome.reward[over].any()
        over = stepped.over
        now = now._replace(time=now.time + 1, view=stepped.reached)
    assert over.all()
    assert pool.faults == 0


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("raises", "raised an error:\n.*the door is stuck"),
        ("dies", r"died \(signal 9, SIGKILL\)"),
        ("hangs", "has not returned for 1 seconds"),
    ],
)
def test_a_failing_worker_cuts_off_its_episodes_and_play_goes_on(pool_of, tmp_path, caplog, trouble, told):
    pool = pool_of(trouble=trouble, once=str(tmp_path / "once"), time_limit=1.0)
    now = pool.start(SEEDS)
    _, now = advance(pool, now)
    with caplog.at_level(logging.WARNING):
        stepped, after = advance(pool, now)
    lost = stepped.lost
    assert lost.any()
    assert lost.all() == (trouble != "raises")  # an error costs one episode, a worker all of its episodes
    assert pool.faults == lost.sum()
    assert stepped.outcome.truncated[lost].all()
    assert not stepped.outcome.terminated[lost].any()
    assert not stepped.outcome.reward[lost].any()
    assert (after.time[lost] == 0).all()
    for row in np.flatnonzero(lost):  # another episode has begun there
        assert rows_equal(after.view, row, PyDoors().reset(100 + int(row)))
    place = r"the simulator helpers.simulators:PyDoors, worker 0, in step 2 of the episode with seed \d+: "
    assert re.match(place + told, caplog.messages[0], re.DOTALL)
    stepped, _ = advance(pool, after)
    assert not stepped.lost.any()
    assert pool.faults == lost.sum()


def test_who_fails_again_and_again_is_an_error(pool_of):
    pool = pool_of(trouble="raises", at=1)
    now = pool.start(SEEDS)
    for _ in range(MOST_FAILURES - 1):
        _, now = advance(pool, now)
    with pytest.raises(alma.SimulatorError, match=rf"the door is stuck\nThis worker has failed {MOST_FAILURES} times"):
        advance(pool, now)


def test_what_the_description_does_not_allow_is_an_error(pool_of):
    pool = pool_of(trouble="nan", at=1)
    now = pool.start(SEEDS)
    place = r"the simulator helpers.simulators:PyDoors, worker 0, in step 1 of the episode with seed 0: "
    with pytest.raises(alma.SimulatorError, match=place + "View.entities holds a number that is NaN or infinite"):
        step(pool, now)


def test_a_simulator_that_cannot_be_made_is_an_error():
    with pytest.raises(ValueError, match=r"cannot make PyDoors\(windows=3\): .* unexpected keyword argument 'windows'"):
        HostTask(PyDoors, {"windows": 3})


PROGRAM = """
import numpy as np, sys, time
from alma import HostTask
from helpers.simulators import PyDoors
pool = HostTask(PyDoors, {"trouble": sys.argv[1]}, workers=1, time_limit=100).pool
now = pool.start(np.arange(2))
for process in pool._processes.values():
    print(process._process.pid, flush=True)
for _ in range(3):
    pool.advance(now.episode, now.time, np.ones((2, 2), np.int32), np.arange(2))
    now = now._replace(time=now.time + 1)
    time.sleep(0.1)
print("played", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("trouble", ["", "hangs"])
def test_no_worker_is_left_when_the_main_process_ends(end, trouble):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, trouble], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    worker = int(program.stdout.readline())
    assert alive(worker)
    if trouble:
        time.sleep(0.5)  # in the step that hangs, most likely
    else:
        assert program.stdout.readline() == b"played\n"
    program.send_signal(end)
    program.wait(20)
    program.stdout.close()
    await_end(worker)


def test_what_a_simulator_has_started_ends_with_its_worker(pool_of, tmp_path):
    pool = pool_of(trouble="dies", once=str(tmp_path / "once"))
    now = pool.start(SEEDS)
    _, now = advance(pool, now)
    group = pool._processes[0]._process.pid
    advance(pool, now)
    await_end(-group)


def alive(pid):
    """Whether a process runs, or any of a group if the number is negative."""
    found = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    running = [line.split()[:2] for line in found.splitlines() if line.split()[2][0] != "Z"]
    return str(abs(pid)) in [own if pid > 0 else group for own, group in running]


def await_end(pid):
    until = time.monotonic() + 20
    while alive(pid):
        assert time.monotonic() < until, f"{pid} is still there"
        time.sleep(0.05)
