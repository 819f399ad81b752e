"""Loggers of a run's metrics: JSON lines, TensorBoard and (optional) Weights & Biases."""

import json
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import scalar

from alma.files import atomic_write, naming
from alma.runs.metrics import read_metrics


@runtime_checkable
class Sink(Protocol):
    """Logs metrics during a run."""

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        """Log the metrics at an environment step."""

    def close(self) -> None:
        """Flush and close files or connections."""


class JsonLines:
    """Writes one JSON object per line. On resuming, lines after the checkpoint's step are dropped."""

    def __init__(self, path: Path, step: int) -> None:
        kept = [line for line in read_metrics(path) if line["step"] <= step]
        with atomic_write(path) as unfinished:
            unfinished.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self.path, self.file = path, open(path, "a")  # noqa: SIM115

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        with naming(self.path):
            self.file.write(json.dumps({"step": step, **metrics}) + "\n")
            self.file.flush()

    def close(self) -> None:
        with suppress(OSError):  # a line that could not be written: that was told when it was tried
            self.file.close()


class TensorBoard:
    """Writes TensorBoard event files, in this thread: errors of a thread of its own, as on a full disk, would be lost.

    On resuming, TensorBoard is told to forget what was logged after the checkpoint's step.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder
        folder.mkdir(exist_ok=True)
        with naming(folder):
            # Files are told apart by the second and the process.
            self.events = EventsWriter(str(folder / "events"), f".{os.getpid()}")
            if step:
                self.events.write_event(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
            self.events.flush()

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        with naming(self.path):
            for name, value in metrics.items():
                if isinstance(value, int | float):
                    self.events.write_event(Event(step=step, wall_time=time.time(), summary=scalar(name, value)))
            self.events.flush()

    def close(self) -> None:
        with suppress(OSError):  # as above
            self.events.close()


def require_wandb() -> Any:
    """Import `wandb`. Raises a ValueError that says how to install it if it is missing."""
    try:
        import wandb
    except ImportError:
        raise ValueError("--wandb needs an extra: pip install 'alma-marl[wandb]'") from None
    return wandb


class Wandb:
    """Logs to Weights & Biases. A resumed run continues the same W&B run, whose id is stored in the run folder."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        id_file = folder / "wandb.id"
        if not id_file.exists():
            with atomic_write(id_file) as unfinished:
                unfinished.write_text(uuid.uuid4().hex)
        self.run = require_wandb().init(
            project="alma", name=folder.name, id=id_file.read_text(), resume="allow", config=config
        )

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        self.run.log({name: value for name, value in metrics.items() if isinstance(value, int | float)}, step=step)

    def close(self) -> None:
        self.run.finish()
