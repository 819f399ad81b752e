"""Stopping cleanly on Ctrl-C, SIGTERM or a closed terminal."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(Exception):  # noqa: N818
    """The run was asked to stop; everything is saved."""


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Context manager that yields a function which tells whether a signal has asked the process to stop.

    Signals are SIGINT (Ctrl-C), SIGTERM and, where it exists, SIGHUP (closed terminal). After the first one, SIGINT has
    its usual effect, so that a second Ctrl-C ends the process at once; batch systems and launchers may repeat SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
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
