"""`alma play`: episodes with scripts."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from alma.allocators.rules import allocator_by_name
from alma.cli.arguments import TaskChoice
from alma.cli.consoles import console
from alma.cli.showing import check_drawing, draw_episode, play_with_progress, summary_table
from alma.learning.options import require_at_least
from alma.play.episodes import check_episodes
from alma.play.scripts import scripted_actors
from alma.play.team import NOTHING_LEARNED, Team
from alma.runs.config import check_seed
from alma.viewer.animation import check_out

RENAMED = {"--policy": "--actors", "--allocation": "--allocator"}
"""Flags that were called differently in version 0.1, and are still accepted."""


@dataclass(frozen=True)
class Play(TaskChoice):
    """Play episodes with scripted or random agents; print success rates, or draw an episode."""

    actors: str | None = None
    """Actors: one of the task's scripts, or `random`. If not given: the task's first script, or `random`."""
    allocator: str | None = None
    """Allocator: `heuristic`, `heuristic:NAME`, `random`, or `fixed:0,0,1` with a subtask for each agent. If not
    given: `heuristic`, or `random` if the task has none."""
    period: int = 5
    """Steps between allocations, unless a subtask finishes or appears before."""
    episodes: int = 1
    """Number of episodes to play."""
    seed: int = 0
    """Random seed of the episodes."""
    out: Path | None = None
    """Draw the first episode into this file: .gif, .mp4, or .png for numbered frames."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        check_episodes(self.episodes)
        require_at_least(1, self, "period")

    def run(self) -> None:
        task = self.make()
        actors = self.actors or next(iter(task.policies), "random")
        allocator = self.allocator or ("heuristic" if task.heuristics else "random")
        team = Team(scripted_actors(task, actors), allocator_by_name(task, allocator), self.period)
        params = NOTHING_LEARNED
        if self.out:
            check_drawing(task)
            check_out(self.out)
        summary = play_with_progress(task, team, params, self.episodes, self.seed).summary()
        if self.json:
            names = {"task": self.task, "actors": actors, "allocator": allocator, "seed": self.seed}
            print(json.dumps({**names, **summary}))
        else:
            console.print(f"actors {actors}, allocator {allocator}")
            console.print(summary_table(summary))
        if self.out:
            print(f"episode drawn to {draw_episode(task, team, params, self.seed, self.out)}", file=sys.stderr)


def as_named_now(arguments: list[str]) -> list[str]:
    """The arguments with the present names of renamed flags."""
    split = [argument.partition("=") for argument in arguments]
    return [RENAMED.get(flag, flag) + equals + value for flag, equals, value in split]
