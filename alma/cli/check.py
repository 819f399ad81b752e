"""`alma check`: whether a task keeps its contract."""

from collections.abc import Iterable
from dataclasses import dataclass

from alma.cli.arguments import TaskChoice
from alma.cli.consoles import busy, console
from alma.play.episodes import check_episodes
from alma.runs.config import RunConfig, check_seed
from alma.task.check import check_task
from alma.task.registry import is_imported

EPISODES_BEFORE_TRAINING = 2

MOST_CHECKED = 1_000
"""Most episodes that are checked; all of them are played at once, and every step is kept."""


@dataclass(frozen=True)
class Check(TaskChoice):
    """Check a task of your own with random play, and list every breach of the contract of alma.Task."""

    episodes: int = 8
    """Number of episodes to play."""
    seed: int = 0
    """Random seed of the episodes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_episodes(self.episodes, MOST_CHECKED)
        check_seed(self.seed)

    def run(self) -> None:
        task = self.make()
        with busy(f"playing {self.episodes} random episodes"):
            check_task(task, episodes=self.episodes, seed=self.seed)
        console.print(f"{self.task} keeps the contract of tasks, in {self.episodes} episodes of random play")


def check_own_tasks(configs: Iterable[RunConfig]) -> None:
    """Check tasks of the user's own, before anything is written: errors in them are hard to read once they are trained.

    Simulators are not checked: they may take long to start, and tell what is wrong themselves.
    """
    checked: list[tuple[str, dict]] = []
    for config in configs:
        if not is_imported(config.task) or (config.task, config.task_options) in checked:
            continue
        checked.append((config.task, config.task_options))
        task = config.make_task()
        if task.is_pure:
            with busy(f"checking the task first, as `alma check {config.task}` does"):
                check_task(task, episodes=EPISODES_BEFORE_TRAINING)
