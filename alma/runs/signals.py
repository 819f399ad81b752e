"""Stopping on request: Ctrl-C, SIGTERM, a closed terminal."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None  # type: ignore[assignment]


class Interrupted(Exception):  # noqa: N818
    """The run was asked to stop; everything is saved."""


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Within, the first request to stop is only noted: the answer is whether there was one. A second one kills.

    Requests are Ctrl-C, SIGTERM, and where there is such a thing a terminal that is closed.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are none of its business
        yield lambda: False
        return
    asked: list[int] = []
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        for name, handler in before.items():
            signal.signal(name, handler)

    for name in filter(None, (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None))):
        before[name] = signal.signal(name, note)
    try:
        yield lambda: bool(asked)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
