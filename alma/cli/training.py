"""Training in this process, as `alma train` and `alma resume` do it."""

from collections.abc import Sequence

from alma.cli.consoles import console, messages
from alma.cli.showing import summary_table
from alma.runs import distributed
from alma.runs.config import RunConfig
from alma.runs.devices import make_program
from alma.runs.folder import RunFolder
from alma.runs.loop import Run, train
from alma.runs.progress import NoDisplay, make_display
from alma.training.options import TrainingOptions
from alma.training.together import Together


def train_in(folder: RunFolder, config: RunConfig, quiet: bool, wandb: bool, devices: int = 1) -> None:
    """Train on so many devices of every process, from the start or from where the folder is, and say what came of it.

    Only process 0 of a distributed run says anything.
    """
    if not distributed.is_writer():
        run = Run(folder, config, NoDisplay())
        train([run], make_program(run.trainer, devices), run.display)
        return
    messages.print(f"training {config.method} on {config.task}, seed {config.seed}, into {folder.path}")
    if note := steps_note(config.options):
        messages.print(note)
    with make_display(messages, quiet) as display:
        run = Run(folder, config, display, wandb)
        [result] = train([run], make_program(run.trainer, devices), display)
    console.print(summary_table(result["evaluation"]))
    minutes = result["training_minutes"]
    console.print(f"{result['step']:,} steps in {minutes:.1f} minutes of training; all in {folder.path}")
    policy = f"{folder.path} --trust" if config.own_code else str(folder.path)
    console.print(f"play more episodes: alma evaluate {policy}", soft_wrap=True)
    console.print(f"replay some, with the values behind decisions: alma watch {policy}", soft_wrap=True)


def train_together_in(folders: Sequence[RunFolder], configs: Sequence[RunConfig], quiet: bool) -> None:
    """Train runs that differ in their seeds alone in one program, from the start or from where the folders are."""
    names = ", ".join(str(folder.path) for folder in folders)
    messages.print(f"training {configs[0].method} on {configs[0].task} together, into {names}", soft_wrap=True)
    with make_display(messages, quiet) as display:
        runs = [Run(folder, config, display) for folder, config in zip(folders, configs, strict=True)]
        train(runs, Together(runs[0].trainer, len(runs)), display)


def steps_note(options: TrainingOptions) -> str:
    """A note on the number of steps if it is not what was asked for, since runs are whole chunks; empty if it is."""
    chunk = options.updates_per_chunk * options.collection.steps_per_update
    steps = -(-options.steps // chunk) * chunk
    return f"trains {steps:,} steps: whole chunks of {chunk:,}" if steps != options.steps else ""
