"""`alma demo`: training for a few minutes, before and after."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import jax

from alma.cli.consoles import console, messages
from alma.cli.showing import draw_episode, play_with_progress, summary_table
from alma.learning.options import require_at_least
from alma.play.episodes import check_episodes
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.loop import Run
from alma.runs.policy import load
from alma.runs.progress import make_display
from alma.runs.signals import run_interruptibly
from alma.training.presets import PRESETS


@dataclass(frozen=True)
class Demo:
    """Train ALMA on SaveTheCity for a few minutes, say how often it is solved before and after, and draw an episode."""

    out: Path = Path("demo")
    """Folder for the run and the pictures; an earlier demo there is replaced."""
    steps: int = 1_000_000
    """Environment steps to train for."""
    episodes: int = 256
    """Episodes of each evaluation, before and after training."""
    preset: Literal["fast", "tiny"] = "fast"
    """Preset of training options; `tiny` only shows that everything works."""

    def __post_init__(self) -> None:
        check_episodes(self.episodes)
        require_at_least(1, self, "steps")

    def run(self) -> None:
        messages.print("Firefighters, builders and generalists learn to save a city, and who is sent where.")
        preset = PRESETS[self.preset]
        report = replace(preset.report, evaluate_every=102_400, episodes=64, final_episodes=self.episodes)
        options = replace(preset, steps=self.steps, report=report)
        config = RunConfig("save-the-city", preset=self.preset, options=options)
        folder = RunFolder(self.out / "run")
        folder.create(config, force=True)
        trainer = config.make_trainer()
        untrained = trainer.play_params(trainer.init(jax.random.key(config.seed)))
        play = partial(play_with_progress, trainer.task, trainer.team, untrained, self.episodes, 0)
        before = run_interruptibly(play).success_rate
        with make_display(messages) as display:
            result = Run(folder, config, display).train()
        console.print(summary_table(result["evaluation"]))
        after = result["evaluation"]["success_rate"]
        console.print(f"solved {before:.1%} before and {after:.1%} after {result['training_minutes']:.1f} minutes")
        learned = load(folder.path).params
        picture = draw_episode(trainer.task, trainer.team, learned, 0, self.out / "save-the-city.gif")
        console.print(f"an episode with what was learned: {picture}")
        console.print(f"play more of them: alma evaluate {folder.path} --episodes 512")
        console.print(f"see what they think: alma watch {folder.path}")
