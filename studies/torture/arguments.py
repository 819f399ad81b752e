"""Arguments in any order: the order of flags never changes a configuration, and nonsense never ends in a traceback."""

import contextlib
import io
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alma.cli.main import read_command

HEAD = ("command line", "cases", "failures", "time")

FLAGS: dict[str, Sequence[Sequence[str]]] = {
    "train": (
        ("--seed", "3"), ("--preset", "tiny"), ("--method", "flat"), ("--set", "agents=3"), ("--set", "max_steps=40"),
        ("--actors", "refil"), ("--actors.gamma", "0.9"), ("--actors.n-step=2",), ("--actors.popart",),
        ("--steps", "5000"), ("--play", "live"), ("--allocator.period", "7"), ("--collection.warmup", "20480"),
        ("--force",), ("--out", "somewhere"), ("--exploration.action.start", "0.5"), ("--report.chunk", "2048"),
        ("--actors.learning_rate", "1e-3"), ("--allocator.proposals", "8"), ("--jobs", "2"), ("--cores", "1"),
        ("--no-allocator.popart",), ("--quiet",), ("--wandb",),
    ),
    "evaluate": (
        ("--seed", "3"), ("--episodes", "7"), ("--set", "agents=3"), ("--allocator", "heuristic"), ("--json",),
        ("--actors", "random"), ("--out", "a.gif"), ("--trust",), ("--task", "save-the-city"),
    ),
    "play": (
        ("--seed", "3"), ("--episodes", "7"), ("--set", "agents=3"), ("--allocator", "random"), ("--actors", "random"),
        ("--json",), ("--period", "2"),
    ),
}  # fmt: skip

FIRST = {
    "train": ("save-the-city", "starcraft"),
    "evaluate": ("runs/a", "pretrained:save-the-city"),
    "play": ("save-the-city",),
}

JUNK = (
    "", "-", "--", "---", "-x", "--x", "=", "--seed", "--seed=", "--seed=x", "--set", "--set=a", "--set==", "agents=",
    "--steps", "-1", "1e999", "9" * 5000, "\x00", "é", "--actors.gamma", "--actors", "{}", "[", "save-the-city", "nan",
    "--preset", "x.toml", "--method", "os:system", "--out", "/", "--help-all=1", "--trust=1", "--no-trust", "@file",
)  # fmt: skip


@dataclass
class Tally:
    """What came of command lines."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[str, ...]:
        return (self.name, str(self.cases), str(len(self.failures)), f"{self.seconds:.0f} s")


def ordered(count: int, seed: int) -> Tally:
    """Command lines in two orders each; both must mean the same, or be refused."""
    tally, rng, began = Tally("the same flags in another order"), random.Random(seed), time.monotonic()
    for _ in range(count):
        command = rng.choice(list(FLAGS))
        chosen = [[rng.choice(FIRST[command])], *rng.sample(FLAGS[command], rng.randrange(1, len(FLAGS[command])))]
        orders = [chosen, rng.sample(chosen, len(chosen))]
        lines = [[command, *(word for words in order for word in words)] for order in orders]
        found = [meaning(line) for line in lines]
        tally.cases += 1
        if not same(found) or "Traceback" in str(found):
            tally.failures.append(f"{lines}: {found}")
    tally.seconds = time.monotonic() - began
    return tally


def nonsense(count: int, seed: int) -> Tally:
    """Random words; each is understood or refused in a line."""
    tally, rng, began = Tally("random words"), random.Random(seed), time.monotonic()
    for _ in range(count):
        command = rng.choice(list(FLAGS))
        words = [word for words in rng.sample(FLAGS[command], rng.randrange(3)) for word in words]
        words += rng.sample(JUNK, rng.randrange(1, 5))
        line = [command, *rng.sample(words, len(words))]
        tally.cases += 1
        try:
            meaning(line)
        except BaseException as error:
            tally.failures.append(f"{line}: {type(error).__name__}: {error}")
    tally.seconds = time.monotonic() - began
    return tally


def meaning(line: list[str]) -> Any:
    """The command that is meant, with its settings as a table; or what is wrong with it."""
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            found = read_command(line)
    except (ValueError, OSError) as error:
        return f"refused: {error}"
    except SystemExit as error:
        return f"ended: {error.code}"
    return found


def same(found: list[Any]) -> bool:
    """Whether two command lines mean the same; options of the task may be repeated, and their order says nothing."""
    if any(isinstance(each, str) for each in found):
        return all(isinstance(each, str) for each in found)
    tables = [{**vars(each), "set": sorted(each.set)} for each in found]
    return tables[0] == tables[1]
