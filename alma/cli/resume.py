"""`alma resume`: resume a run that was stopped, or train a finished one for longer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from alma.cli.arguments import Switch
from alma.cli.consoles import messages
from alma.cli.mirrors import FLAT
from alma.cli.sharing import SharingOptions
from alma.cli.training import train_in, train_together_in
from alma.runs import distributed
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.loop import extend
from alma.runs.sinks import require_wandb


@dataclass(frozen=True)
class Resume:
    """Resume a run that was stopped, or train a run for longer; its configuration stays."""

    folders: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Folder of the run; with --together, of several runs that differ in their seeds alone."""
    steps: int | None = None
    """Environment steps to train for in all, to train for longer. If not given, as many as planned."""
    together: Switch = False
    """Train several runs in one program, from the last step that all have a checkpoint of."""
    quiet: bool = False
    """Print lines instead of a live display."""
    wandb: bool = False
    """Log to Weights & Biases too (needs the package wandb)."""
    trust: Switch = False
    """Import the task or method that the run names as module:Name: for your own runs, and those of people you trust."""
    sharing: Annotated[SharingOptions, FLAT] = field(default_factory=SharingOptions)
    """On which devices the run is trained, in one process or several."""

    def __post_init__(self) -> None:
        if not self.folders:
            raise ValueError("name a folder")
        if len(self.folders) > 1 and not self.together:
            raise ValueError("resume one run at a time, or several of one program with --together")
        if self.together and (self.wandb or self.sharing != SharingOptions()):
            raise ValueError("--together trains in one process on one device: leave out --wandb, --devices")

    def run(self) -> None:
        if self.wandb:
            require_wandb()  # before anything is written
        folders = [RunFolder(folder) for folder in self.folders]
        configs = [folder.read_config(self.trust) for folder in folders]
        if self.together:
            check_differ_in_seeds(configs)
        for folder in folders if self.steps is None else []:
            folder.check_unfinished()
        devices = self.sharing.begin(configs[0], folders[0].devices)
        if self.steps is not None:
            distributed.writer_first(partial(extend_all, folders, configs, self.steps))
            configs = [folder.read_config(self.trust) for folder in folders]
        for folder in folders:
            folder.check_unfinished()
        if self.together:
            train_together_in(folders, configs, self.quiet)
        else:
            train_in(folders[0], configs[0], self.quiet, self.wandb, devices)


def extend_all(folders: Sequence[RunFolder], configs: Sequence[RunConfig], steps: int) -> None:
    """Raise the number of steps of runs."""
    for folder, config in zip(folders, configs, strict=True):
        extend(folder, config, steps, messages.print)


def check_differ_in_seeds(configs: Sequence[RunConfig]) -> None:
    """Raise a ValueError unless runs differ in their seeds and in nothing else."""
    if any(replace(config, seed=0) != replace(configs[0], seed=0) for config in configs):
        raise ValueError("--together is for runs that differ in nothing but their seeds")


def as_resume(arguments: list[str]) -> list[str] | None:
    """Arguments of `alma train` with `--resume RUN`, as those of `alma resume`; None if they are without."""
    for at, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--resume":
            run, rest = ([value], arguments[at + 1 :]) if equals else (arguments[at + 1 : at + 2], arguments[at + 2 :])
            return [*run, *arguments[:at], *rest]
    return None
