"""Loggers of a run's metrics: JSON lines, TensorBoard and (optional) Weights & Biases."""

import json
import uuid
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tensorboardX import SummaryWriter

from alma.files import atomic_write, read_json_lines


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
        kept = [line for line in read_json_lines(path) if line["step"] <= step]
        with atomic_write(path) as unfinished:
            unfinished.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self.file = open(path, "a")  # noqa: SIM115

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        self.file.write(json.dumps({"step": step, **metrics}) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


class TensorBoard:
    """Writes TensorBoard event files."""

    def __init__(self, folder: Path, step: int) -> None:
        self.writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        for name, value in metrics.items():
            if isinstance(value, int | float):
                self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


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
            id_file.write_text(uuid.uuid4().hex)
        self.run = require_wandb().init(
            project="alma", name=folder.name, id=id_file.read_text(), resume="allow", config=config
        )

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        self.run.log({name: value for name, value in metrics.items() if isinstance(value, int | float)}, step=step)

    def close(self) -> None:
        self.run.finish()
