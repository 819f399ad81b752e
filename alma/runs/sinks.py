"""Where metrics of a run go: JSON lines and TensorBoard, and Weights & Biases for those who have it."""

import json
import uuid
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tensorboardX import SummaryWriter

from alma.runs.checkpoint import written_at_once


@runtime_checkable
class Sink(Protocol):
    """Takes metrics as a run makes them."""

    def write(self, step: int, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    """One object a line. On resumption, lines from beyond the checkpoint are dropped: they will be made again."""

    def __init__(self, path: Path, step: int) -> None:
        kept = [line for line in read_lines(path) if line["step"] <= step]
        with written_at_once(path) as unfinished:
            unfinished.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self.file = open(path, "a")  # noqa: SIM115

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        self.file.write(json.dumps({"step": step, **metrics}) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a file of JSON lines; a last line that was cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    whole = []
    for number, line in enumerate(lines, 1):
        try:
            whole.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number < len(lines):
                raise ValueError(f"{path} is damaged in line {number}: {error.msg}; delete that line") from None
    return whole


class TensorBoard:
    """Event files."""

    def __init__(self, folder: Path, step: int) -> None:
        self.writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        for name, value in metrics.items():
            if isinstance(value, int | float):
                self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


def require_wandb() -> Any:
    """The module of Weights & Biases, or a complaint that says how to get it."""
    try:
        import wandb
    except ImportError:
        raise ValueError("--wandb needs an extra: pip install 'alma-marl[wandb]'") from None
    return wandb


class Wandb:
    """Weights & Biases, an extra. A run that is resumed goes on as the same one; its folder remembers which."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        remembered = folder / "wandb.id"
        if not remembered.exists():
            remembered.write_text(uuid.uuid4().hex)
        self.run = require_wandb().init(
            project="alma", name=folder.name, id=remembered.read_text(), resume="allow", config=config
        )

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        self.run.log({name: value for name, value in metrics.items() if isinstance(value, int | float)}, step=step)

    def close(self) -> None:
        self.run.finish()
