"""Scores of trained runs: greedy episodes for every point of a figure, and learning curves."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool
from rich.console import Console
from rich.progress import track

from alma.files import read_json, read_json_lines, write_json
from alma.play.episodes import play_episodes
from alma.play.summary import summarise
from alma.play.team import Team, TeamParams
from alma.reproduce.figures import Arm, Case, Figure, text_of
from alma.reproduce.running import Budget
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS, Policy, fingerprint, load
from alma.runs.signals import listening
from alma.task.task import Task

EPISODES, SEED = 512, 1_000_000
"""The number of episodes and the seed; the defaults of `alma evaluate`."""
SOLVED, NOT_SOLVED = "1", "0"
"""The results of single episodes, as stored in a string."""


@dataclass(frozen=True)
class Score:
    """The score of one seed at a point of a figure."""

    case: Case
    seed: int
    run: dict[str, Any]
    """The `result.json` of the run."""
    summary: dict[str, Any]
    """The summary of the episodes."""

    @property
    def successes(self) -> Bool[np.ndarray, "E"]:
        """Whether each episode was solved."""
        return np.array([mark == SOLVED for mark in self.summary["successes"]])


@dataclass(frozen=True)
class CurvePoint:
    """An evaluation during training."""

    case: Case
    seed: int
    step: int
    minutes: float
    summary: dict[str, Any]


def score_all(figure: Figure, budget: Budget, out: Path, console: Console) -> list[Score]:
    """Score all points of a figure; those of unfinished runs, or without weights and stored scores, are left out."""
    found = []
    for case in track(figure.cases, f"{figure.name}: playing", console=console, disable=not console.is_terminal):
        for seed, other in budget.points_of(figure, case):
            names = [case.arm.run_name(budget.preset, seed)]
            names += [case.allocator.run_name(budget.preset, other)] if isinstance(case.allocator, Arm) else []
            folders = [RunFolder(out / "runs" / name) for name in names]
            if not all(folder.result.exists() for folder in folders):
                continue
            if summary := played(case, folders):
                found.append(Score(case, seed, read_json(folders[0].result), summary))
    return found


def played(case: Case, folders: list[RunFolder]) -> dict[str, Any]:
    """The summary of greedy episodes, stored in the run's folder and reused while the weights are the same.

    Published runs have no weights, only stored summaries. Empty if there is neither.
    """
    file = folders[0].path / "scores" / f"{condition(case, folders)}.json"
    kept = _kept(file)
    played_by = {"weights": [weights_of(folder) for folder in folders], "episodes": EPISODES, "seed": SEED}
    if kept.get("played_by") == played_by:
        return kept
    if not all((folder.path / WEIGHTS).exists() for folder in folders):
        return {}
    policy = load(folders[0].path)
    task = policy.task_with(case.task_options)
    team, params = team_of(case, policy, folders, task)
    results = listening(lambda: play_episodes(task, team, params, EPISODES, SEED))
    successes = "".join(SOLVED if solved else NOT_SOLVED for solved in results.success)
    summary = {"played_by": played_by, **summarise(results), "successes": successes}
    file.parent.mkdir(exist_ok=True)
    write_json(file, summary)
    return summary


def _kept(file: Path) -> dict[str, Any]:
    """The stored summary; empty if it is missing or cannot be read."""
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def weights_of(folder: RunFolder) -> str | None:
    """The fingerprint of a run's weights; of published runs, which have none, that in `result.json`; None if new."""
    weights = folder.path / WEIGHTS
    if weights.exists():
        return fingerprint(weights)
    return read_json(folder.result).get("weights") if folder.result.exists() else None


def team_of(case: Case, policy: Policy, folders: list[RunFolder], task: Task) -> tuple[Team, TeamParams]:
    """The team of a case and its parameters."""
    allocator = load(folders[1].path) if isinstance(case.allocator, Arm) else case.allocator
    return policy.team_with(allocator=allocator, task=task)


def condition(case: Case, folders: list[RunFolder]) -> str:
    """The name of a stored summary: how the case differs from the run as it was trained."""
    changes = [f"{name}={text_of(value)}" for name, value in case.task_options.items()]
    other = folders[1].path.name if len(folders) > 1 else case.allocator
    return "_".join([*changes, *([f"allocator={other}".replace(":", "-")] if other else [])]) or "as-trained"


def curves_of(figure: Figure, budget: Budget, out: Path) -> list[CurvePoint]:
    """All evaluations during the training of a figure's finished runs.

    Only for cases that play a run as it was trained, with its own task options and allocator.
    """
    found = []
    for case in figure.cases:
        if case.task_options or case.allocator is not None:
            continue
        for seed in budget.seeds_of(figure, case.arm):
            folder = RunFolder(out / "runs" / case.arm.run_name(budget.preset, seed))
            if folder.result.exists():
                found += curve_of_run(case, seed, folder)
    return found


def curve_of_run(case: Case, seed: int, folder: RunFolder) -> list[CurvePoint]:
    """All evaluations during the training of one run."""
    found = []
    for line in read_json_lines(folder.metrics):
        summary = {
            name.removeprefix("evaluation/"): value for name, value in line.items() if name.startswith("evaluation/")
        }
        if summary:
            found.append(CurvePoint(case, seed, line["step"], line["minutes"], summary))
    return found
