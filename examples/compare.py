"""Train methods on a task for equal minutes, and compare them. Runs that are there already are kept.

    python -m examples.compare examples.foraging:Foraging --minutes 3 --seeds 0 1 --out runs/foraging

Writes `results.json`, and where matplotlib is installed `curves.png`: how much is solved, over minutes of training.
"""

import argparse
import signal
from pathlib import Path
from typing import Any

import alma
from alma.cli.arguments import parse_setting
from alma.files import read_json, read_json_lines, write_json
from alma.runs.signals import Interrupted

METHODS = ("alma", "heuristic", "flat")
QUICK = {
    "steps": 100_000_000,  # minutes end the runs
    "collection.environments": 32,
    "collection.buffer": 131_072,
    "collection.warmup": 4_096,
    "collection.steps_per_update": 128,
    "exploration.action.over": 50_000,
    "exploration.proposal.over": 50_000,
    "exploration.subtask.over": 50_000,
    "report.chunk": 5_120,
    "report.log_every": 5_120,
    "report.evaluate_every": 20_480,
    "report.episodes": 64,
}
"""For simulators that take as long as learning does: fewer environments, more updates, less exploration."""


def train(task: str, method: str, seed: int, minutes: float, out: Path, options: dict[str, Any]) -> None:
    """Train until the time is up. What has been learned is saved, as if the run had been stopped by hand."""

    def stop_in_time(progress: alma.Progress) -> None:
        if progress.seconds >= 60 * minutes:
            signal.raise_signal(signal.SIGINT)

    chosen = {"task_options": options, "options": QUICK}
    try:
        alma.train(task, method=method, seed=seed, out=out, on_progress=stop_in_time, **chosen)
    except Interrupted as stopped:
        print(f"{out}: {stopped}", flush=True)


def score(run: Path, task: str, episodes: int) -> dict[str, Any]:
    """What the policy of a run does in greedy episodes, and its evaluations during training."""
    file = run / "compared.json"
    if not file.exists():
        evaluations = [row for row in read_json_lines(run / "metrics.jsonl") if "evaluation/success_rate" in row]
        curve = [(row["step"], row["minutes"], row["evaluation/success_rate"]) for row in evaluations]
        steps = max(row["step"] for row in read_json_lines(run / "metrics.jsonl"))
        final = alma.evaluate(alma.load(run, trust=frozenset({task})), episodes=episodes).summary()
        write_json(file, {"run": run.name, "steps": steps, "final": final, "curve": curve})
    return read_json(file)


def table(scores: list[dict[str, Any]]) -> str:
    """Final performance as Markdown."""
    lines = ["| run | steps | solved, % (95 %) | return |", "|---|---|---|---|"]
    for found in scores:
        final = found["final"]
        solved = " - ".join(f"{100 * bound:.1f}" for bound in final["interval"])
        solved = f"{100 * final['success_rate']:.1f} ({solved})"
        lines.append(f"| {found['run']} | {found['steps']:,} | {solved} | {final['mean_return']:.2f} |")
    return "\n".join(lines)


def draw(scores: list[dict[str, Any]], title: str, out: Path) -> None:
    """Learning curves; runs of one method have one colour."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no curves.png: it needs matplotlib")
        return
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    methods = list(dict.fromkeys(found["run"].rpartition("-")[0] for found in scores))
    for found in scores:
        method, _, seed = found["run"].rpartition("-")
        _, minutes, solved = zip(*found["curve"], strict=True) if found["curve"] else ((), (), ())
        style = {"color": f"C{methods.index(method)}", "linestyle": "-" if seed == scores[0]["run"][-1] else "--"}
        axes.plot(minutes, solved, label=f"{method}, seed {seed}", **style)
    axes.set(title=title, xlabel="minutes of training", ylabel="solved", ylim=(0, 1))
    axes.legend(fontsize="small")
    figure.savefig(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="module:Class")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="option of the task")
    parser.add_argument("--minutes", type=float, default=3, help="training time of a run")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--episodes", type=int, default=128, help="greedy episodes that are played in the end")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    asked = parser.parse_args()
    options = dict(parse_setting(setting) for setting in asked.set)
    scores = []
    for run in [asked.out / f"{method}-{seed}" for method in asked.methods for seed in asked.seeds]:
        if not run.exists():
            method, _, seed = run.name.rpartition("-")
            train(asked.task, method, int(seed), asked.minutes, run, options)
        scores.append(score(run, asked.task, asked.episodes))
    write_json(asked.out / "results.json", {"task": asked.task, "minutes": asked.minutes, "runs": scores})
    draw(scores, asked.task.partition(":")[2], asked.out / "curves.png")
    print(table(scores))


if __name__ == "__main__":
    main()
