"""The command line: its commands, and how errors are reported."""

import os
import shlex
import signal
import sys
from contextlib import suppress
from importlib import metadata
from typing import Annotated, Any, NoReturn, Union

import tyro

from alma.cli.bench import Bench, BenchEnv, BenchTrain, read_bench
from alma.cli.check import Check
from alma.cli.compare import Compare
from alma.cli.consoles import messages
from alma.cli.demo import Demo
from alma.cli.evaluate import Evaluate
from alma.cli.methods import Methods
from alma.cli.mirrors import mirror_type
from alma.cli.parsing import HELP, read
from alma.cli.play import Play, as_named_now
from alma.cli.reproduce import Reproduce
from alma.cli.resume import Resume, as_resume
from alma.cli.starting import INTERRUPTED
from alma.cli.sweep import SweepRuns
from alma.cli.tasks import Tasks
from alma.cli.train import Train, read_train
from alma.cli.tune import Tune
from alma.cli.watch import Watch
from alma.runs import runtime
from alma.runs.distributed import PartnerLostError
from alma.runs.signals import Interrupted, respond_at_once, run_interruptibly
from alma.task.check import TaskError
from alma.task.own_code import describe_error, origin
from alma.task.registry import is_imported

COMMANDS: dict[str, type] = {
    "demo": Demo,
    "train": Train,
    "resume": Resume,
    "evaluate": Evaluate,
    "watch": Watch,
    "compare": Compare,
    "play": Play,
    "reproduce": Reproduce,
    "sweep": SweepRuns,
    "tune": Tune,
    "bench": Bench,
    "methods": Methods,
    "tasks": Tasks,
    "check": Check,
}

TRACEBACK = "--traceback"

PARTNER_LOST = 75
"""The exit status of a process of a distributed run when another one was lost: it can be started again."""

ENDED_ANYWHERE = (Check, Evaluate, Watch, Compare, Play, BenchEnv, BenchTrain, Methods, Tasks)
"""Commands with nothing to save: Ctrl-C ends them wherever they are. The others look for signals themselves."""

DESCRIPTION = (
    "Multi-agent learning for composite tasks. `alma COMMAND --help` explains a command; "
    "`alma --print-completion bash` (or zsh) prints a script for shell completion; `alma --version` prints the "
    "version; `--traceback`, with any command, shows where in the code an error comes from."
)


def main() -> None:
    """The program `alma`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # importing is over: see `starting.py`
    respond_at_once()
    try:
        run(sys.argv[1:])
    except SystemExit as ended:
        if ended.code in (INTERRUPTED, PARTNER_LOST):
            _leave_at_once(ended.code)
        raise
    except KeyboardInterrupt:  # a second time
        _leave_at_once(INTERRUPTED)


def _leave_at_once(code: int) -> NoReturn:
    """End the process without waiting for what JAX may still be computing, or for processes that are lost."""
    if messages.is_terminal:  # a display may still be there
        messages.show_cursor()
        messages.line()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> None:
    """Run a command. Errors that users can mend end it with one line, or with a traceback after --traceback."""
    shows_traceback = TRACEBACK in arguments
    arguments = [argument for argument in arguments if argument != TRACEBACK]
    runtime.configure()
    runtime.collect_garbage_seldom()
    command = None
    try:
        command = read_command(arguments)
        if isinstance(command, ENDED_ANYWHERE):
            run_interruptibly(command.run)
        else:
            command.run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads the output, such as `head`, has seen enough. What is left must not go there again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Interrupted as stopped:
        messages.print(str(stopped), soft_wrap=True)
        sys.exit(INTERRUPTED)
    except PartnerLostError as error:
        messages.print(f"alma: {error}", soft_wrap=True, highlight=False)
        sys.exit(PARTNER_LOST)
    except Exception as error:
        text = message_of(error, getattr(command, "task", None))
        if shows_traceback or not text:
            raise
        sys.exit(f"alma: {without_controls(text)}")
    except KeyboardInterrupt:
        messages.print("stopped")
        sys.exit(INTERRUPTED)


def without_controls(text: str) -> str:
    """A text with control characters spelled out: in names from files, they could make a terminal do anything."""
    return "".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)


def message_of(error: Exception, task: str | None) -> str:
    """The message of an error that users can mend; empty for others, which are shown with a traceback."""
    if isinstance(error, TaskError):
        return str(error)
    if origin(error):
        return f"{describe_error(error)} ({TRACEBACK} shows all of it)"
    if isinstance(error, OSError | ValueError):
        return str(error)
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):  # what JAX's errors begin with
        return "there is not enough memory: lower sizes, such as --collection.buffer, --actors.batch or --jobs"
    if task and is_imported(task):  # what a task returns may not fit long after it was called
        question = f"does the task keep its contract? `alma check {task}` tells, {TRACEBACK} shows where"
        return f"{describe_error(error)}: {question}"
    return ""


def read_command(arguments: list[str]) -> Any:
    """The command that is asked for, ready to run."""
    name, *rest = arguments or ["--help"]
    if name == "train" and (resumed := as_resume(rest)) is not None:
        name, rest = "resume", resumed
        messages.print(
            f"going on with a run has its own command now: {shlex.join(['alma', name, *rest])}", soft_wrap=True
        )
    if name == "train":
        return read_train(rest)
    if name == "bench":
        return read_bench(rest)
    if name == "play":
        return read(Play, as_named_now(rest), "alma play")
    if name in COMMANDS:
        return read(COMMANDS[name], rest, f"alma {name}")
    if name == "--print-completion":
        if rest not in (["bash"], ["zsh"]):
            raise ValueError("completion is for two shells: alma --print-completion bash, or zsh")
        tyro.cli(overview(), prog="alma", args=["--tyro-print-completion", *rest])
    if name == "--version":
        print(f"alma {metadata.version('alma-marl')}")
        sys.exit()
    if name not in HELP:
        raise ValueError(f"there is no command {name!r}: choose from {', '.join(COMMANDS)} (see alma --help)")
    tyro.cli(overview(), prog="alma", description=DESCRIPTION, args=["--help"])


def overview() -> Any:
    """All commands as one type, for the help that lists them and for completion."""
    return Union[  # noqa: UP007
        tuple(
            Annotated[
                mirror_type(kind, completes=True),
                tyro.conf.subcommand(name, description=str(kind.__doc__).partition("\n")[0]),
            ]
            for name, kind in COMMANDS.items()
        )
    ]
