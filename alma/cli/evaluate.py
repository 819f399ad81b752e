"""`alma evaluate`: success rates of a trained policy."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from alma.cli.arguments import LearnedChoice
from alma.cli.consoles import console
from alma.cli.showing import check_drawing, draw_episode, play_with_progress, summary_table
from alma.play.episodes import check_episodes
from alma.viewer.animation import check_out


@dataclass(frozen=True)
class Evaluate(LearnedChoice):
    """Evaluate what a run has learned: play greedy episodes and print success rates."""

    episodes: int = 512
    """Number of episodes to play."""
    out: Path | None = None
    """Draw the first episode into this file: .gif, .mp4, or .png for numbered frames."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_episodes(self.episodes)

    def run(self) -> None:
        policy = self.load()
        task = self.make_task(policy)
        team, params = self.make_team(policy, task)
        if self.out:
            check_drawing(task)
            check_out(self.out)
        summary = play_with_progress(task, team, params, self.episodes, self.seed).summary()
        if self.json:
            names = {
                "policy": self.policy,
                "task": self.task or policy.config.task,
                "method": policy.config.method,
                "actors": self.actors or self.policy,
                "allocator": self.allocator or self.policy,
                "task_options": self.task_options(policy),
            }
            print(json.dumps({**names, "seed": self.seed, **summary}))
        else:
            console.print(summary_table(summary))
        if self.out:
            print(f"episode drawn to {draw_episode(task, team, params, self.seed, self.out)}", file=sys.stderr)
