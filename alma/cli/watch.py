"""`alma watch`: a replay."""

import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path

from alma.cli.arguments import LearnedChoice, allocator_or_run
from alma.cli.consoles import busy, messages
from alma.cli.showing import check_drawing
from alma.play.episodes import check_episodes
from alma.play.team import Team, TeamParams
from alma.runs.policy import Policy, check_fits
from alma.runs.progress import COMPILING
from alma.task.task import Task
from alma.viewer.animation import ENDINGS, check_out, write_animation
from alma.viewer.page import PAGE, write_page
from alma.viewer.page_data import Side, TeamLabels, page_data, team_labels
from alma.viewer.picture import draw_frames
from alma.viewer.record import record


@dataclass(frozen=True)
class Watch(LearnedChoice):
    """Write a page that replays greedy episodes, with the values behind every decision, and open it."""

    episodes: int = 3
    """Number of episodes to show, the first ones that `alma evaluate` plays with the same seed. Pictures show one."""
    against: str | None = None
    """Show this beside it, on the same initial states: another run (its folder or weights), or the same actors under
    another allocator (`heuristic`, `heuristic:NAME`, `random`, `fixed:0,0,1`, `search`)."""
    out: Path = Path("replay.html")
    """File to write; one that exists is replaced. A page (.html), or pictures of the first episode: .gif, .mp4, or .png
    for numbered frames."""
    open: bool = True
    """Open the page in the browser."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_episodes(self.episodes)

    def run(self) -> None:
        check_out(self.out, (PAGE, *ENDINGS))
        policy = self.load()
        task = self.make_task(policy)
        teams = [(self._labels(policy), *self.make_team(policy, task))]
        if self.against:
            teams.append(self._other(policy, task, self.against))
        if self.out.suffix.lower() != PAGE:
            check_drawing(task)
            frames = draw_frames(task, [self._play(task, 1, *team) for team in teams])
            print(f"episode drawn to {write_animation(self.out, frames)}")
            return
        sides = [self._play(task, self.episodes, *team) for team in teams]
        print(f"page written to {write_page(self.out, page_data(task, sides, self.seed))}")
        if self.open and not webbrowser.open(self.out.resolve().as_uri()):
            messages.print("there is no browser to open it with: open the file yourself")

    def _play(self, task: Task, episodes: int, labels: TeamLabels, team: Team, params: TeamParams) -> Side:
        allocator = f", allocator: {labels.allocator}" if labels.allocator else ""
        with busy(f"playing {labels.label}{allocator}: {COMPILING}"):
            return Side(labels, record(task, team, params, episodes, self.seed))

    def _labels(self, policy: Policy) -> TeamLabels:
        return team_labels(self.policy, policy.config.method, self.actors or "", self.allocator or "")

    def _other(self, policy: Policy, task: Task, name: str) -> tuple[TeamLabels, Team, TeamParams]:
        """The team that is shown beside the first: the same actors under another allocator, or another run."""
        other = allocator_or_run(name, self.trusted, "watch against")
        if isinstance(other, str):
            beside = replace(self, allocator=name)
            return beside._labels(policy), *beside.make_team(policy, task)
        check_fits(other.task.spec, task.spec)
        return TeamLabels(name, other.config.method), other.team, other.params
