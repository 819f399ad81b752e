"""Stopping cleanly on Ctrl-C, SIGTERM or a closed terminal."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.1
"""Time between two looks whether a signal has arrived, while other work is done."""


class Interrupted(Exception):  # noqa: N818
    """The run was asked to stop; what had been trained is saved."""


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Context manager that yields a function which tells whether a signal has asked the process to stop.

    Signals are SIGINT (Ctrl-C), SIGTERM and, where it exists, SIGHUP (closed terminal). After the first one, SIGINT has
    its usual effect, so that a second Ctrl-C ends the process at once; batch systems and launchers may repeat SIGTERM.
    """
    if not _is_main_thread():  # only the main thread may handle signals
        yield lambda: False
        return
    asked: list[int] = []
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before[signal.SIGINT])

    for name in filter(None, (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None))):
        before[name] = signal.signal(name, note)
    try:
        yield lambda: bool(asked)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


_responsive = False


def respond_at_once() -> None:
    """Let this process answer signals at once, also while it compiles or runs a compiled program.

    For programs of our own: `run_interruptibly` then works in other threads, which contexts of JAX in the caller's
    thread, such as `jax.default_device`, do not reach.
    """
    global _responsive
    _responsive = True


def run_interruptibly(work: Callable[[], T], poll: Callable[[], None] = lambda: None) -> T:
    """Do work that does not look for signals itself, as JAX does not; the result is its result.

    After `respond_at_once`, `poll` is called every `POLL_SECONDS` meanwhile, to look whether a signal has arrived and
    answer it; what it raises ends the wait, and so does a KeyboardInterrupt. The work itself goes on in its thread: the
    process should end soon.
    """
    if not (_responsive and _is_main_thread()):
        done = work()
        poll()
        return done
    future: Future[T] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # Not a daemon: the interpreter must not be taken down while compiled programs run.
    threading.Thread(target=do, name="alma-work").start()
    while True:
        try:
            return future.result(POLL_SECONDS)
        except TimeoutError:
            if future.done():  # the work has raised it
                raise
        poll()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
