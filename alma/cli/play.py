"""`alma play`: episodes with scripts."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from alma.allocators.rules import allocator_by_name
from alma.cli.arguments import TaskChoice
from alma.cli.showing import check_drawing, console, draw_episode, play_with_progress, summary_table
from alma.play.scripts import scripted_actors
from alma.play.summary import summarise
from alma.play.team import NOTHING_LEARNED, Team
from alma.runs.config import check_seed
from alma.viewer.animation import check_out


@dataclass(frozen=True)
class Play(TaskChoice):
    """Play episodes with scripts; print how they went, or draw one."""

    policy: str = "scripted"
    """Who acts: one of the task's scripted policies, or `random`."""
    allocation: str = "heuristic"
    """Who allocates: `heuristic`, `heuristic:NAME`, `random`, or `fixed:0,0,1` with a subtask for each agent."""
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
        actors, allocator = scripted_actors(task, self.policy), allocator_by_name(task, self.allocation)
        team, params = Team(actors, allocator, self.period), NOTHING_LEARNED
        check_seed(self.seed)
        if self.out:
            check_drawing(task)
            check_out(self.out)
        summary = summarise(play_with_progress(task, team, params, self.episodes, self.seed))
        if self.json:
            names = {"task": self.task, "policy": self.policy, "allocation": self.allocation, "seed": self.seed}
            print(json.dumps({**names, **summary}))
        else:
            console.print(summary_table(summary))
        if self.out:
            print(f"episode drawn to {draw_episode(task, team, params, self.seed, self.out)}", file=sys.stderr)
