"""The data of a figure in the layout of marl-eval: environment, task, algorithm, run, step, metrics.

marl-eval needs the same runs for all algorithms in all tasks of an environment, evaluated equally often. So every
setting becomes an environment, and every point of a sweep a task.
"""

from typing import Any

from alma.reproduce.figures import Case, Figure
from alma.reproduce.scores import CurvePoint, Score


def marl_eval(figure: Figure, scores: list[Score], curves: list[CurvePoint]) -> dict[str, Any]:
    """The comparable runs of a figure, with the evaluations that all of them have."""
    data: dict[str, Any] = {}
    for environment in dict.fromkeys(score.case.arm.setting.name for score in scores):
        runs = comparable([score for score in scores if score.case.arm.setting.name == environment], figure.reference)
        evaluated = [
            {point.step: point for point in curves if (point.case, point.seed) == (score.case, score.seed)}
            for score in runs
        ]
        steps = [step for step in next(iter(evaluated), {}) if all(step in points for points in evaluated)]
        for score, points in zip(runs, evaluated, strict=True):
            algorithms = data.setdefault(environment, {}).setdefault(task_of(score.case), {})
            seeds = algorithms.setdefault(score.case.label.replace(",", ""), {})
            seeds[f"seed_{score.seed}"] = run_of(score, [points[step] for step in steps])
    return data


def comparable(scores: list[Score], reference: str) -> list[Score]:
    """The runs that have the same tasks and seeds for all labels.

    Tasks and seeds are those of the reference (seeds: those that it has in all tasks); labels without all of these runs
    are left out.
    """
    found: dict[str, dict[tuple[str, int], Score]] = {}
    for score in scores:
        found.setdefault(score.case.label, {})[task_of(score.case), score.seed] = score
    there = found.get(reference, {}).keys()
    tasks, seeds = dict.fromkeys(task for task, _ in there), dict.fromkeys(seed for _, seed in there)
    everywhere = [seed for seed in seeds if all((task, seed) in there for task in tasks)]
    needed = [(task, seed) for task in tasks for seed in everywhere]
    return [runs[pair] for runs in found.values() if all(pair in runs for pair in needed) for pair in needed]


def task_of(case: Case) -> str:
    """The name of marl-eval's task: the setting, with the panel and value of a sweep."""
    name = case.arm.setting.name
    return name if case.at is None else f"{name}: {case.panel} {case.at:g}"


def run_of(score: Score, points: list[CurvePoint]) -> dict[str, Any]:
    """The evaluations of a run and its final score, which also serves as the only evaluation if there is no other."""
    end = CurvePoint(score.case, score.seed, score.run["step"], score.run["training_minutes"], score.summary)
    return {
        **{
            f"step_{number}": {
                "step_count": point.step,
                "elapsed_time": round(point.minutes * 60, 1),
                **metrics_of(point.summary),
            }
            for number, point in enumerate(points or [end])
        },
        "absolute_metrics": metrics_of(score.summary),
    }


def metrics_of(summary: dict[str, Any]) -> dict[str, list[float]]:
    return {"win_rate": [summary["success_rate"]], "return": [summary["mean_return"]]}
