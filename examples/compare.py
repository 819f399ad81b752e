"""Train methods on a task for equal minutes, and compare them. Runs that are there already are kept.

    python -m examples.compare examples.foraging:Foraging --minutes 3 --seeds 0 1 --out runs/foraging

Minutes are those of the processor, which the learner and its worker processes use from the first training steps on:
whatever else runs on the machine, every method gets the same.

Writes `results.json`, and where matplotlib is installed `curves.png`: how much is solved, over minutes of training.
"""

import argparse
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alma
from alma.cli.arguments import parse_setting
from alma.files import read_json, read_json_lines, write_json
from alma.runs.signals import Interrupted

METHODS = ("alma", "heuristic", "flat")
PRESET = Path(__file__).with_name("simulators.toml")
STEPS = 100_000_000
"""More than there is time for: minutes end the runs."""
CLOCK = "clock.json"
"""In a run that is done: the minutes of the processor that were used at every step."""


def processor_minutes() -> float:
    """Minutes of the processor that this process and its worker processes have used so far."""
    shown = subprocess.run(["ps", "-A", "-o", "ppid=,time="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in shown.splitlines())
    workers = sum(_seconds(used) for parent, used in rows if int(parent) == os.getpid())
    return (time.process_time() + workers) / 60


def _seconds(used: str) -> float:
    """The seconds in `[[days-]hours:]minutes:seconds`, as `ps` tells the time of the processor."""
    days, _, hours = used.rpartition("-")
    return 86_400 * int(days or 0) + sum(float(part) * 60**i for i, part in enumerate(reversed(hours.split(":"))))


def until(minutes: float, clock: list[tuple[int, float]]) -> Callable[[alma.Progress], None]:
    """Ends training when so many minutes of the processor are used; notes in `clock` how many were at which step."""

    def note(progress: alma.Progress) -> None:
        if not clock or clock[-1][0] != progress.step:
            clock.append((progress.step, processor_minutes()))
        if clock[-1][1] - clock[0][1] >= minutes:
            signal.raise_signal(signal.SIGINT)

    return note


def train(task: str, minutes: float, out: Path, **chosen: Any) -> None:
    """Train until the time is up. What has been learned is saved, as if the run had been stopped by hand."""
    clock: list[tuple[int, float]] = []
    try:
        alma.train(task, out=out, options={"steps": STEPS}, on_progress=until(minutes, clock), **chosen)
    except Interrupted as stopped:
        if not clock or clock[-1][1] - clock[0][1] < minutes:  # somebody else has stopped it
            raise
        print(f"{out}: {stopped}", flush=True)
    write_json(out / CLOCK, {"minutes": [(step, used - clock[0][1]) for step, used in clock]})


def score(run: Path, task: str, episodes: int) -> dict[str, Any]:
    """What the policy of a run does in greedy episodes, and its evaluations during training."""
    file = run / "compared.json"
    if not file.exists():
        evaluations = [row for row in read_json_lines(run / "metrics.jsonl") if "evaluation/success_rate" in row]
        minutes = dict(read_json(run / CLOCK)["minutes"])
        curve = [(row["step"], minutes[row["step"]], row["evaluation/success_rate"]) for row in evaluations]
        final = alma.evaluate(alma.load(run, trust=frozenset({task})), episodes=episodes).summary()
        write_json(file, {"run": run.name, "steps": max(minutes), "final": final, "curve": curve})
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
    axes.set(title=title, xlabel="minutes of the processor", ylabel="solved", ylim=(0, 1))
    axes.legend(fontsize="small")
    figure.savefig(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="module:Class")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="option of the task")
    parser.add_argument("--minutes", type=float, default=3, help="minutes of the processor for each run")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--preset", default=PRESET, help="name or file of a preset; the steps are left to the minutes")
    parser.add_argument("--episodes", type=int, default=128, help="greedy episodes that are played in the end")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    asked = parser.parse_args()
    options = dict(parse_setting(setting) for setting in asked.set)
    scores = []
    for seed, method in itertools.product(asked.seeds, asked.methods):
        run = asked.out / f"{method}-{seed}"
        if not (run / CLOCK).exists():
            chosen = {"method": method, "seed": seed, "preset": str(asked.preset), "task_options": options}
            train(asked.task, asked.minutes, run, **chosen)
        scores.append(score(run, asked.task, asked.episodes))
    scores.sort(key=lambda found: asked.methods.index(found["run"].rpartition("-")[0]))
    write_json(asked.out / "results.json", {"task": asked.task, "minutes": asked.minutes, "runs": scores})
    draw(scores, asked.task.partition(":")[2], asked.out / "curves.png")
    print(table(scores))


if __name__ == "__main__":
    main()
