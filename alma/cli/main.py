"""The command line: all commands, and what becomes of errors."""

import os
import shlex
import sys
from typing import Annotated, Any, Union

import tyro

from alma.cli.bench import Bench
from alma.cli.demo import Demo
from alma.cli.evaluate import Evaluate
from alma.cli.lists import Methods, Tasks
from alma.cli.play import Play
from alma.cli.reproduce import Reproduce
from alma.cli.resume import Resume, as_resume
from alma.cli.showing import notes
from alma.cli.train import Train, preset_of
from alma.cli.watch import Watch
from alma.runs import runtime
from alma.runs.signals import Interrupted


def commands(arguments: list[str]) -> Any:
    """All commands, as one type."""
    train = Train(options=preset_of(arguments))
    return Union[  # noqa: UP007
        Annotated[Demo, tyro.conf.subcommand("demo")],
        Annotated[Train, tyro.conf.subcommand("train", default=train)],
        Annotated[Resume, tyro.conf.subcommand("resume")],
        Annotated[Evaluate, tyro.conf.subcommand("evaluate")],
        Annotated[Watch, tyro.conf.subcommand("watch")],
        Annotated[Play, tyro.conf.subcommand("play")],
        Annotated[Reproduce, tyro.conf.subcommand("reproduce")],
        Annotated[Bench, tyro.conf.subcommand("bench")],
        Annotated[Methods, tyro.conf.subcommand("methods")],
        Annotated[Tasks, tyro.conf.subcommand("tasks")],
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run a command; errors that a user can mend are told in one line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    runtime.collect_garbage_seldom()
    try:
        if arguments[:1] == ["train"] and (resumed := as_resume(arguments[1:])) is not None:
            arguments = ["resume", *resumed]
            notes.print(
                f"going on with a run has its own command now: {shlex.join(['alma', *arguments])}", soft_wrap=True
            )
        command = tyro.cli(
            commands(arguments),
            prog="alma",
            description="Multi-agent learning for composite tasks.",
            args=arguments,
        )
        command.run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads the output, such as `head`, has seen enough. What is left must not go there again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (OSError, ValueError) as error:
        sys.exit(f"alma: {error}")
    except Interrupted as stopped:
        notes.print(str(stopped))
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
