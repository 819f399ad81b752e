"""Scores of trained runs: greedy episodes for every point of a figure, and learning curves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool
from rich.console import Console
from rich.progress import track

from alma.files import brief, read_json, write_json
from alma.play.episodes import EVALUATION_SEED, play_episodes
from alma.play.summary_check import check_summary
from alma.play.team import Team, TeamParams
from alma.reproduce.figures import Arm, Case, Figure, text_of
from alma.reproduce.running import Budget
from alma.runs.folder import RunFolder
from alma.runs.metrics import evaluation_in, read_metrics
from alma.runs.policy import WEIGHTS, Policy, fingerprint, load
from alma.runs.signals import run_interruptibly
from alma.task.importing import Trust
from alma.task.task import Task

EPISODES, SEED = 512, EVALUATION_SEED
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
            if summary := played(case, folders, named_by(case)):
                found.append(Score(case, seed, folders[0].read_result(), summary))
    return found


def played(case: Case, folders: list[RunFolder], trust: Trust = False) -> dict[str, Any]:
    """The summary of greedy episodes, stored in the run's folder and reused while the weights are the same.

    Published runs have no weights, only stored summaries. Empty if there is neither. `trust` is that of `alma.load`.
    """
    file = folders[0].path / "scores" / f"{condition(case, folders)}.json"
    weights_there = all((folder.path / WEIGHTS).exists() for folder in folders)
    kept = _kept(file, replaceable=weights_there)
    played_by = {"weights": [weights_of(folder) for folder in folders], "episodes": EPISODES, "seed": SEED}
    if kept.get("played_by") == played_by:
        return kept
    if not weights_there:
        return {}
    policy = load(folders[0].path, trust=trust)
    task = policy.task_with(case.task_options)
    team, params = team_of(case, policy, folders, task, trust)
    results = run_interruptibly(lambda: play_episodes(task, team, params, EPISODES, SEED))
    successes = "".join(SOLVED if solved else NOT_SOLVED for solved in results.success)
    summary = {"played_by": played_by, **results.summary(), "successes": successes}
    file.parent.mkdir(exist_ok=True)
    write_json(file, summary)
    return summary


def _kept(file: Path, replaceable: bool) -> dict[str, Any]:
    """The stored summary; empty if it is missing, or if it is damaged and can be replaced."""
    if not file.exists():
        return {}
    try:
        return read_played(file)
    except ValueError:
        if replaceable:
            return {}
        raise


def read_played(file: Path) -> dict[str, Any]:
    """A summary that `played` stored. Raises a ValueError that names the file if it contradicts itself."""
    kept = read_json(file)
    try:
        check_played(kept)
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {brief(error)}; restore it, or leave the run out") from None
    return kept


def check_played(summary: dict[str, Any]) -> None:
    """Raise a ValueError unless a summary is one that `played` stores."""
    check_summary(summary)
    marks = summary.get("successes")
    if not isinstance(marks, str) or set(marks) - {SOLVED, NOT_SOLVED} or len(marks) != summary["episodes"]:
        raise ValueError("successes must have a 0 or 1 for each episode")
    if abs(marks.count(SOLVED) - summary["success_rate"] * len(marks)) > 1e-6:
        raise ValueError("successes are not those of the success_rate")


def weights_of(folder: RunFolder) -> str | None:
    """The fingerprint of a run's weights; of published runs, which have none, that in `result.json`; None if new."""
    weights = folder.path / WEIGHTS
    if weights.exists():
        return fingerprint(weights)
    return folder.read_result().get("weights") if folder.result.exists() else None


def named_by(case: Case) -> frozenset[str]:
    """The tasks and methods that a figure names: a file that names one of them too may have it imported."""
    arms = [arm for arm in (case.arm, case.allocator) if isinstance(arm, Arm)]
    return frozenset(name for arm in arms for name in (arm.setting.task, arm.method))


def team_of(case: Case, policy: Policy, folders: list[RunFolder], task: Task, trust: Trust) -> tuple[Team, TeamParams]:
    """The team of a case and its parameters."""
    allocator = load(folders[1].path, trust=trust) if isinstance(case.allocator, Arm) else case.allocator
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
    for line in read_metrics(folder.metrics):
        if summary := evaluation_in(line):
            found.append(CurvePoint(case, seed, line["step"], line["minutes"], summary))
    return found
