"""Writes the files of a figure: data, a table and plots."""

import csv
from pathlib import Path
from typing import Any

from alma.files import atomic_write, read_json, write_json
from alma.reproduce.figures import Figure
from alma.reproduce.marl_eval import marl_eval
from alma.reproduce.plots import draw, picture_files
from alma.reproduce.rows import Row, rows_of
from alma.reproduce.running import Budget
from alma.reproduce.scores import EPISODES, CurvePoint, Score
from alma.runs.folder import RunFolder


def write_figure(
    figure: Figure,
    budget: Budget,
    scores: list[Score],
    curves: list[CurvePoint],
    out: Path,
    *,
    runs_in: Path,
    command: str,
    plots: bool,
) -> list[Path]:
    """Write all files of a figure into its folder below `out`, from runs in `runs_in`; `command` reproduces it."""
    folder = out / (figure.name if budget.preset == "fast" else f"{figure.name}-{budget.preset}")
    rows = rows_of(scores, figure.reference)
    summary = summary_of(figure, budget, scores, rows, runs_in, command)
    origin = f"`{command}`: preset `{budget.preset}`, {summary['runs']} runs"
    return write_files(figure, scores, curves, rows, folder, summary=summary, origin=origin, plots=plots)


def write_files(
    figure: Figure,
    scores: list[Score],
    curves: list[CurvePoint],
    rows: list[Row],
    folder: Path,
    *,
    summary: dict[str, Any],
    origin: str,
    plots: bool,
) -> list[Path]:
    """Write data, table and plots into a folder, replacing earlier ones; `origin` says where the numbers are from."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "summary.json", summary)
    write_json(folder / "marl_eval.json", marl_eval(figure, scores, curves))
    write_csv(folder / "scores.csv", [score_record(score) for score in scores])
    if curves:
        write_csv(folder / "curves.csv", [curve_record(point) for point in curves])
    with atomic_write(folder / "table.md") as unfinished:
        unfinished.write_text(table(figure, rows, f"{origin}, {summary['training_hours']:.1f} hours of training."))
    stale = [*picture_files(folder), *([] if curves else [folder / "curves.csv"])]
    for old in stale:  # left over from earlier results
        old.unlink(missing_ok=True)
    drawn = draw(figure, rows, curves, folder) if plots and scores else []
    names = ("summary.json", "marl_eval.json", "scores.csv", *(["curves.csv"] if curves else []), "table.md")
    return [*(folder / name for name in names), *drawn]


def summary_of(
    figure: Figure, budget: Budget, scores: list[Score], rows: list[Row], runs_in: Path, command: str
) -> dict[str, Any]:
    """The contents of `summary.json`: everything that has to be stated with a published number."""
    runs = {(score.case.arm.run_name(budget.preset, score.seed)): score.run["training_minutes"] for score in scores}
    trained_with = [read_json(RunFolder(runs_in / name).config)["versions"] for name in runs]
    return {
        "figure": figure.name,
        "command": command,
        "preset": budget.preset,
        "episodes": EPISODES,
        "compared_with": figure.reference,
        "runs": len(runs),
        "training_hours": round(sum(runs.values()) / 60, 3),
        "missing": missing(figure, budget, scores),
        "versions": different(trained_with),
        "rows": [row.record for row in rows],
    }


def different(versions: list[dict[str, str]]) -> list[dict[str, str]]:
    """Each of the versions once."""
    return [found for i, found in enumerate(versions) if found not in versions[:i]]


def missing(figure: Figure, budget: Budget, scores: list[Score]) -> list[str]:
    """Points of the figure without a score.

    Cases with the allocator of another seed only count if any of their points has a score: they cannot be scored from
    published runs, which have no weights.
    """
    controls = [score.case for score in scores if score.case.other_seed]
    there = {(score.case.panel, score.case.label, score.case.at, score.seed) for score in scores}
    return [
        f"{case.panel}: {case.label}{'' if case.at is None else f' at {case.at}'}, seed {seed}"
        for case in figure.cases
        if case in controls or not case.other_seed
        for seed, _ in budget.points_of(figure, case)
        if (case.panel, case.label, case.at, seed) not in there
    ]


def score_record(score: Score) -> dict[str, Any]:
    """A row of `scores.csv`."""
    arm, summary = score.case.arm, score.summary
    return {
        "setting": arm.setting.name,
        "panel": score.case.panel,
        "label": score.case.label,
        "at": "" if score.case.at is None else score.case.at,
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
    """A row of `curves.csv`."""
    return {
        "setting": point.case.arm.setting.name,
        "panel": point.case.panel,
        "label": point.case.label,
        "at": "" if point.case.at is None else point.case.at,
        "method": point.case.arm.method,
        "seed": point.seed,
        "step": point.step,
        "minutes": round(point.minutes, 2),
        "episodes": point.summary["episodes"],
        "success_rate": point.summary["success_rate"],
        "mean_return": round(point.summary["mean_return"], 4),
    }


def write_csv(path: Path, records: list[dict[str, Any]]) -> None:
    with atomic_write(path) as unfinished, unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def table(figure: Figure, rows: list[Row], origin: str) -> str:
    """The results as a Markdown table, below a line that says where they are from."""
    lines = [
        f"# {figure.title}",
        "",
        origin,
        f"Solved: interquartile mean over seeds of the success rate in {EPISODES} greedy episodes, with its 95 %",
        "bootstrap interval over seeds and episodes. Minutes: of the fastest seed.",
    ]
    for panel in dict.fromkeys(row.panel for row in rows):
        here = [row for row in rows if row.panel == panel]
        swept = any(row.at is not None for row in here)
        compared = any(row.improvement is not None for row in here)
        head = ["", *(["at"] if swept else []), "seeds", "steps", "minutes", "solved", "return"]
        head += [f"{figure.reference} is better"] if compared else []
        lines += ["", f"## {panel}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for row in here:
            cells = [
                row.label,
                *(["" if row.at is None else f"{row.at:g}"] if swept else []),
                ", ".join(map(str, row.seeds)),
                f"{row.steps / 1e6:.1f}M",
                f"{row.minutes:.1f}",
                str(row.solved),
                f"{row.mean_return:.2f}",
                *(["" if row.improvement is None else str(row.improvement)] if compared else []),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
