"""Output that several commands share: progress, tables, pictures."""

from pathlib import Path
from typing import Any

from rich.console import Group
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from alma.cli.consoles import busy, messages
from alma.play.episodes import play_episodes
from alma.play.summary import Results
from alma.play.team import Team, TeamParams
from alma.runs.progress import COMPILING
from alma.task.task import Task
from alma.viewer.animation import write_animation
from alma.viewer.page_data import Side, TeamLabels
from alma.viewer.picture import draw_frames
from alma.viewer.record import record


def play_with_progress(task: Task, team: Team, params: TeamParams, episodes: int, seed: int) -> Results:
    """Play whole episodes with a progress bar."""
    if not messages.is_terminal:
        messages.print(COMPILING)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed}/{task.total} episodes"),
        BarColumn(),
        TextColumn("{task.fields[solved]}"),
        TimeElapsedColumn(),
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    ) as progress:
        bar = progress.add_task("", total=episodes, solved=COMPILING)

        def update(played: int, solved: int) -> None:
            progress.update(bar, completed=played, solved=f"solved {solved / played:.0%}")

        return play_episodes(task, team, params, episodes, seed, on_progress=update)


def summary_table(summary: dict[str, Any]) -> Group:
    """Success rates by team size, and other means over all episodes below."""
    table = Table()
    for column in ("team size", "episodes", "solved", "95 % interval"):
        table.add_column(column, justify="right")
    rows = {**summary["by_team_size"], "all": summary}
    for name, row in rows.items():
        low, high = row["interval"]
        table.add_row(name, str(row["episodes"]), f"{row['success_rate']:.1%}", f"{low:.1%} - {high:.1%}")
    means = (
        f"mean return {summary['mean_return']:.2f}, mean length {summary['mean_length']:.1f}, "
        f"switches per agent and step {summary['switches_per_step']:.3f}, "
        f"unattended subtasks {summary['unattended_subtasks']:.2f}"
    )
    return Group(table, means)


def check_drawing(task: Task) -> None:
    """Complain about a task that cannot be drawn, before any work is done."""
    if type(task).scene is Task.scene:
        raise ValueError(f"the task {task.spec.name!r} does not say what it looks like: implement `scene` to draw it")


def draw_episode(task: Task, team: Team, params: TeamParams, seed: int, out: Path) -> str:
    """Play one episode and write its pictures; returns the name of the file."""
    with busy(f"drawing an episode: {COMPILING}"):
        side = Side(TeamLabels(), record(task, team, params, 1, seed))
    return write_animation(out, draw_frames(task, [side]))
