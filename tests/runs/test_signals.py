"""Signals are heard while other work is done."""

import os
import signal
import threading

import pytest

from alma.runs import signals
from alma.runs.signals import Interrupted, run_interruptibly


@pytest.fixture
def responsive(monkeypatch):
    monkeypatch.setattr(signals, "_responsive", True)


@pytest.fixture
def endless():
    """Work that goes on until the test is over."""
    over = threading.Event()
    yield over.wait
    over.set()


def test_by_default_work_is_done_in_the_thread_of_the_caller():
    """Where contexts of JAX apply."""
    assert run_interruptibly(threading.current_thread) is threading.main_thread()


def test_programs_that_respond_at_once_work_in_another_thread(responsive):
    assert run_interruptibly(threading.current_thread) is not threading.main_thread()


@pytest.mark.parametrize("error", [ValueError, TimeoutError, KeyboardInterrupt])
def test_errors_of_the_work_come_out(responsive, error):
    def fail():
        raise error("of the work")

    with pytest.raises(error, match="of the work"):
        run_interruptibly(fail)


def test_what_is_heard_ends_the_wait(responsive, endless):
    def give_up():
        raise Interrupted("heard")

    with pytest.raises(Interrupted, match="heard"):
        run_interruptibly(endless, give_up)


def test_without_threads_it_is_heard_when_the_work_is_done():
    with pytest.raises(Interrupted):
        run_interruptibly(lambda: None, lambda: (_ for _ in ()).throw(Interrupted("heard")))


def test_ctrl_c_ends_the_wait(responsive, endless):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(endless)
