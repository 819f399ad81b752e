"""`alma resume`: resume a run that was stopped, or train a finished one for longer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from alma.cli.arguments import Switch
from alma.cli.consoles import messages
from alma.cli.train import train_in
from alma.runs.folder import RunFolder
from alma.runs.loop import extend
from alma.runs.sinks import require_wandb


@dataclass(frozen=True)
class Resume:
    """Resume a run that was stopped, or train a run for longer; its configuration stays."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    steps: int | None = None
    """Environment steps to train for in all, to train for longer. If not given, as many as planned."""
    quiet: bool = False
    """Print lines instead of a live display."""
    wandb: bool = False
    """Log to Weights & Biases too (needs the package wandb)."""
    trust: Switch = False
    """Import the task or method that the run names as module:Name: for your own runs, and those of people you trust."""

    def run(self) -> None:
        if self.wandb:
            require_wandb()  # before anything is written
        folder = RunFolder(self.folder)
        config = folder.read_config(self.trust)
        if self.steps is not None:
            config = extend(folder, config, self.steps, messages.print)
        train_in(folder, config, self.quiet, self.wandb)


def as_resume(arguments: list[str]) -> list[str] | None:
    """Arguments of `alma train` with `--resume RUN`, as those of `alma resume`; None if they are without."""
    for at, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--resume":
            run, rest = ([value], arguments[at + 1 :]) if equals else (arguments[at + 1 : at + 2], arguments[at + 2 :])
            return [*run, *arguments[:at], *rest]
    return None
