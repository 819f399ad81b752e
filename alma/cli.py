"""The command line: a thin layer over the library."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from alma.allocation import allocator_by_name
from alma.benchmark import benchmark_environment
from alma.evaluation import Players, Results, play_episodes, policy_by_name, record_episode, summarise
from alma.registry import make, option_fields, task_names
from alma.report.animation import check_out, write_animation
from alma.task import Task

console = Console()
notes = Console(stderr=True)
"""Progress and remarks go here, so that standard output stays clean for results."""


@dataclass(frozen=True)
class TaskChoice:
    """Which task, and what is different about it."""

    task: tyro.conf.Positional[str]
    """Name of the task; `alma tasks` lists them."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """An option of the task; may be repeated: --set agents=3 --set max_steps=100"""

    def make(self) -> Task:
        return make(self.task, **dict(_parse_setting(setting) for setting in self.set))


def _parse_setting(setting: str) -> tuple[str, Any]:
    """Split `name=value`; values are written as in JSON, pairs also as `2,5`, and plain words are words."""
    name, equals, text = setting.partition("=")
    if not name or not equals:
        raise ValueError(f"write options as name=value, not {setting!r}")
    for attempt in (text, f"[{text}]"):
        try:
            value = json.loads(attempt)
        except json.JSONDecodeError:
            continue
        return name, tuple(value) if isinstance(value, list) else value
    return name, text


@dataclass(frozen=True)
class Play(TaskChoice):
    """Play episodes with scripted players; print how they went, or draw one."""

    policy: str = "scripted"
    """Who acts: one of the task's scripted policies, or `random`."""
    allocation: str = "heuristic"
    """Who allocates: `heuristic`, `heuristic:NAME` or `random`."""
    period: int = 5
    """Allocate anew after so many steps (and whenever a subtask finishes or appears)."""
    episodes: int = 1
    """How many episodes to play."""
    seed: int = 0
    """Where randomness starts."""
    out: Path | None = None
    """Draw the first episode into this file: .gif, .mp4, or .png for numbered frames."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        task = self.make()
        players = Players(policy_by_name(task, self.policy), allocator_by_name(task, self.allocation), self.period)
        check_seed(self.seed)
        if self.out:
            check_drawing(task)
            check_out(self.out)
        summary = summarise(_play_with_progress(task, players, self.episodes, self.seed))
        if self.json:
            names = {"task": self.task, "policy": self.policy, "allocation": self.allocation, "seed": self.seed}
            print(json.dumps({**names, **summary}))
        else:
            console.print(summary_table(summary))
        if self.out:
            print(f"episode drawn to {draw_episode(task, players, self.seed, self.out)}", file=sys.stderr)


@dataclass(frozen=True)
class Bench:
    """Measure how fast things run on this machine."""

    what: tyro.conf.Positional[Literal["env"]]
    """`env`: environment steps per second with random actions, automatic resets and the whole view."""
    choice: Annotated[TaskChoice, tyro.conf.arg(name="")]
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        result = benchmark_environment(self.choice.make(), report=lambda text: notes.print(text, style="dim"))
        if self.json:
            print(json.dumps(result))
            return
        table = Table(title=f"{result['task']} on {result['device']}")
        for column in ("environments", "steps per second", "slowest - fastest", "compile, s"):
            table.add_column(column, justify="right")
        for batch in result["batches"]:
            spread = f"{batch['slowest']:,} - {batch['fastest']:,}"
            row = (batch["environments"], f"{batch['steps_per_second']:,}", spread, batch["compile_seconds"])
            table.add_row(*map(str, row))
        console.print(table)
        console.print(
            f"state {result['state_bytes']} bytes, view {result['view_bytes']} bytes, "
            f"peak memory {result['peak_memory_mb']} MB"
        )


@dataclass(frozen=True)
class Tasks:
    """List the tasks and their options."""

    def run(self) -> None:
        for name in task_names():
            table = Table(title=name, title_justify="left", show_header=False, box=None)
            for field in option_fields(name):
                table.add_row(field.name, str(field.default))
            console.print(table)


@dataclass(frozen=True)
class Demo:
    """Play SaveTheCity, say how often it was solved, and draw an episode."""

    out: Path = Path("demo/save-the-city.gif")
    """Where to draw the episode."""
    episodes: int = 256

    def run(self) -> None:
        notes.print("Firefighters, builders and generalists save a city: scripted actors, heuristic allocation.")
        Play(task="save-the-city", episodes=self.episodes, out=self.out).run()


COMMANDS: dict[str, Callable[..., Any]] = {"demo": Demo, "play": Play, "bench": Bench, "tasks": Tasks}


def _play_with_progress(task: Task, players: Players, episodes: int, seed: int) -> Results:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed}/{task.total} episodes"),
        BarColumn(),
        TextColumn("{task.fields[solved]}"),
        TimeElapsedColumn(),
        console=notes,
        transient=True,
        disable=episodes == 1,
    ) as progress:
        bar = progress.add_task("", total=episodes, solved="compiling")

        def update(played: int, results: Results) -> None:
            progress.update(bar, completed=played, solved=f"solved {results.success.mean():.0%}")

        return play_episodes(task, players, episodes, seed, parallel=64, on_progress=update)


def check_seed(seed: int) -> None:
    """Complain about a seed that JAX does not take."""
    if not 0 <= seed < 2**31:
        raise ValueError(f"a seed must lie between 0 and {2**31 - 1}, not {seed}")


def check_drawing(task: Task) -> None:
    """Complain about a task that has no pictures, before any work is done."""
    if type(task).draw is Task.draw:
        raise ValueError(f"the task {task.spec.name!r} does not draw itself: leave --out away, or implement `draw`")


def summary_table(summary: dict[str, Any]) -> Table:
    table = Table()
    for column in ("team size", "episodes", "solved", "95 % interval"):
        table.add_column(column, justify="right")
    rows = {**summary["by_team_size"], "all": summary}
    for name, row in rows.items():
        low, high = row["interval"]
        table.add_row(name, str(row["episodes"]), f"{row['success_rate']:.1%}", f"{low:.1%} - {high:.1%}")
    table.caption = f"mean return {summary['mean_return']:.2f}, mean length {summary['mean_length']:.1f}"
    return table


def draw_episode(task: Task, players: Players, seed: int, out: Path) -> str:
    """Play one episode and write its pictures; the answer says where."""
    states, allocations, last = record_episode(task, players, seed)
    ending = "solved" if last.success else "not solved"
    frames = [
        task.draw(state, allocation, f"{task.spec.name}   step {t}" + (f"   {ending}" if t == last.length else ""))
        for t, (state, allocation) in enumerate(zip(states, allocations, strict=True))
    ]
    return write_animation(out, frames)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; errors that a user can mend are told in one line."""
    try:
        command = tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="alma", description="Multi-agent learning for composite tasks.", args=arguments
        )
        command.run()
    except (OSError, ValueError) as error:
        sys.exit(f"alma: {error}")
