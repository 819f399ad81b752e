"""The files of a figure: data for other programs, a table to read, and the pictures."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alma.checkpoint import written_at_once
from alma.configuration import versions
from alma.reproduce.figures import Figure
from alma.reproduce.plots import draw, rates
from alma.reproduce.running import Budget
from alma.reproduce.scores import EPISODES, CurvePoint, Score
from alma.reproduce.statistics import Estimate, final_score, probability_of_improvement
from alma.run import write_json


@dataclass(frozen=True)
class Row:
    """What one method came to, at one point of a figure."""

    panel: str
    label: str
    at: float | None
    seeds: tuple[int, ...]
    steps: int
    minutes: float
    """Of training, a run."""
    solved: Estimate
    mean_return: float
    improvement: Estimate | None
    """How likely the figure's reference does better; None for itself, and where it was not run."""


def rows_of(scores: list[Score], reference: str) -> list[Row]:
    """The final performance of everything, in the order of the figure."""
    rows = []
    points = dict.fromkeys((score.play.panel, score.play.label, score.play.at) for score in scores)
    for panel, label, at in points:
        here = [score for score in scores if score.play.panel == panel and score.play.at == at]
        ours, theirs = rates(here, reference), rates(here, label)
        mine = [score for score in here if score.play.label == label]
        rows.append(
            Row(
                panel,
                label,
                at,
                tuple(score.seed for score in mine),
                max(score.run["step"] for score in mine),
                float(np.mean([score.run["training_minutes"] for score in mine])),
                final_score(theirs),
                float(np.mean([score.summary["mean_return"] for score in mine])),
                probability_of_improvement(ours, theirs) if len(ours) and label != reference else None,
            )
        )
    return rows


def write_figure(
    figure: Figure, budget: Budget, scores: list[Score], curves: list[CurvePoint], out: Path, plots: bool
) -> list[Path]:
    """Write all files of a figure into a folder of its own."""
    folder = out / figure.name
    folder.mkdir(parents=True, exist_ok=True)
    rows = rows_of(scores, figure.reference)
    write_json(folder / "summary.json", summary_of(figure, budget, scores, rows))
    write_json(folder / "marl_eval.json", marl_eval(scores, curves))
    write_csv(folder / "scores.csv", [score_record(score) for score in scores])
    write_csv(folder / "curves.csv", [curve_record(point) for point in curves])
    with written_at_once(folder / "table.md") as unfinished:
        unfinished.write_text(table(figure, budget, rows))
    drawn = draw(figure, scores, curves, folder / "figure") if plots and scores else []
    names = ("summary.json", "marl_eval.json", "scores.csv", "curves.csv", "table.md")
    return [*(folder / name for name in names), *drawn]


def summary_of(figure: Figure, budget: Budget, scores: list[Score], rows: list[Row]) -> dict[str, Any]:
    """Everything that a published number has to name."""
    runs = {(score.play.arm.run_name(budget.preset, score.seed)): score.run["training_minutes"] for score in scores}
    return {
        "figure": figure.name,
        "preset": budget.preset,
        "episodes": EPISODES,
        "compared_with": figure.reference,
        "runs": len(runs),
        "training_hours": round(sum(runs.values()) / 60, 2),
        "missing": missing(figure, budget, scores),
        "versions": versions(),
        "rows": [row_record(row) for row in rows],
    }


def missing(figure: Figure, budget: Budget, scores: list[Score]) -> list[str]:
    """Points that were asked for and are not there."""
    there = {(score.play.panel, score.play.label, score.play.at, score.seed) for score in scores}
    return [
        f"{play.panel}: {play.label}{'' if play.at is None else f' at {play.at}'}, seed {seed}"
        for play in figure.plays
        for seed in budget.seeds_of(figure, play.arm)
        if (play.panel, play.label, play.at, seed) not in there
    ]


def row_record(row: Row) -> dict[str, Any]:
    improvement = row.improvement
    return {
        **{name: getattr(row, name) for name in ("panel", "label", "at", "seeds", "steps", "minutes", "mean_return")},
        "solved": vars(row.solved),
        "probability_of_improvement": improvement and vars(improvement),
    }


def score_record(score: Score) -> dict[str, Any]:
    arm, summary = score.play.arm, score.summary
    return {
        "setting": arm.setting.name,
        "panel": score.play.panel,
        "label": score.play.label,
        "at": "" if score.play.at is None else score.play.at,
        "method": arm.method,
        "seed": score.seed,
        "steps": score.run["step"],
        "training_minutes": round(score.run["training_minutes"], 2),
        "episodes": summary["episodes"],
        "success_rate": summary["success_rate"],
        "mean_return": round(summary["mean_return"], 4),
        "mean_length": round(summary["mean_length"], 2),
    }


def curve_record(point: CurvePoint) -> dict[str, Any]:
    return {
        "setting": point.play.arm.setting.name,
        "label": point.play.label,
        "method": point.play.arm.method,
        "seed": point.seed,
        "step": point.step,
        "minutes": round(point.minutes, 2),
        "episodes": point.summary["episodes"],
        "success_rate": point.summary["success_rate"],
        "mean_return": round(point.summary["mean_return"], 4),
    }


def write_csv(path: Path, records: list[dict[str, Any]]) -> None:
    with written_at_once(path) as unfinished, unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def marl_eval(scores: list[Score], curves: list[CurvePoint]) -> dict[str, Any]:
    """The layout of marl-eval: environment, task, algorithm, run, step, metrics."""
    data: dict[str, Any] = {}

    def run_of(play: Any, seed: int) -> dict[str, Any]:
        arm = play.arm
        algorithm = play.label if play.at is None else f"{play.label} {play.at}"
        levels = (arm.setting.task, arm.setting.name, algorithm, f"seed_{seed}")
        at = data
        for level in levels:
            at = at.setdefault(level, {})
        return at

    for point in curves:
        run = run_of(point.play, point.seed)
        run[f"step_{sum(name.startswith('step_') for name in run)}"] = {
            "step_count": point.step,
            "elapsed_time": round(point.minutes * 60, 1),
            "win_rate": [point.summary["success_rate"]],
            "return": [point.summary["mean_return"]],
        }
    for score in scores:
        run_of(score.play, score.seed)["absolute_metrics"] = {
            "win_rate": [score.summary["success_rate"]],
            "return": [score.summary["mean_return"]],
        }
    return data


def table(figure: Figure, budget: Budget, rows: list[Row]) -> str:
    """For people."""
    lines = [
        f"# {figure.title}",
        "",
        f"`alma reproduce {figure.name}`, preset `{budget.preset}`. Solved: interquartile mean over seeds of the",
        f"success rate in {EPISODES} greedy episodes, with its 95 % bootstrap interval over seeds.",
    ]
    for panel in dict.fromkeys(row.panel for row in rows):
        here = [row for row in rows if row.panel == panel]
        swept = any(row.at is not None for row in here)
        columns = ("seeds", "steps", "minutes", "solved", "return", f"{figure.reference} better")
        head = ["", *(["at"] if swept else []), *columns]
        lines += ["", f"## {panel}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for row in here:
            cells = [
                row.label,
                *([f"{row.at:g}"] if swept and row.at is not None else []),
                str(len(row.seeds)),
                f"{row.steps / 1e6:.1f}M",
                f"{row.minutes:.1f}",
                str(row.solved),
                f"{row.mean_return:.2f}",
                "" if row.improvement is None else f"{row.improvement.value:.2f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
