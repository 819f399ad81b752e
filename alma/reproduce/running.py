"""Training the runs of a figure in parallel processes: finished runs are kept, interrupted ones resumed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from alma.files import read_json_lines
from alma.reproduce.figures import Arm, Case, Figure
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS
from alma.runs.signals import Interrupted, stop_on_signal

MINUTES_PER_MILLION = {
    ("save-the-city", "fast"): 1.7,
    ("starcraft", "fast"): 7.5,
    ("save-the-city", "faithful"): 20.0,
    ("starcraft", "faithful"): 60.0,
    ("save-the-city", "paper"): 180.0,
    ("starcraft", "paper"): 750.0,
}
"""Training time of ALMA per million steps, on 2 otherwise idle cores. `paper` and `faithful` on starcraft are guesses.
"""
RELATIVE_COST = {"alma": 1.0, "alma-no-mask": 1.4, "copa": 2.0, "flat": 0.7, "heuristic": 0.5, "random": 0.5}
"""Training time of each method relative to ALMA."""
OVERHEAD_MINUTES = 1.5
"""Time for compilation and evaluation, per run."""
SPEEDUP = 1.3
"""Throughput of two parallel runs with a core each, relative to one run with two cores (ALMA on SaveTheCity)."""
POLL_SECONDS = 0.5
"""Time between checks on running processes."""


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that figures need, new or already in its folder."""

    folder: RunFolder
    config: RunConfig

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def state(self) -> Literal["finished", "published", "begun", "new"]:
        """The state of the run. Published runs are finished runs without weights."""
        if self.folder.result.exists():
            return "finished" if (self.folder.path / WEIGHTS).exists() else "published"
        return "begun" if self.folder.config.exists() else "new"

    @property
    def done(self) -> bool:
        return self.state in ("finished", "published")

    @property
    def step(self) -> int:
        """Environment steps so far, from its last line of metrics."""
        if self.done:
            return self.config.options.steps
        lines = read_json_lines(self.folder.metrics)
        return lines[-1]["step"] if lines else 0

    @property
    def minutes(self) -> float:
        """Estimated minutes left, on 2 cores."""
        if self.done:
            return 0.0
        kind = self.config.method.partition(":")[0]
        per_million = MINUTES_PER_MILLION.get((self.config.task, self.config.preset), 3.0)
        whole = self.config.options.steps / 1e6 * per_million * RELATIVE_COST.get(kind, 1.0) + OVERHEAD_MINUTES
        return whole * (1 - self.step / self.config.options.steps)

    def check(self) -> None:
        """Raise a ValueError if the folder holds another run than this one."""
        if self.state == "new":
            self.folder.check_free()
            return
        learns = self.config.make_team().allocator.learns
        if _essence(self.folder.read_config(), learns) != _essence(self.config, learns):
            raise ValueError(
                f"{self.folder.path} holds a run with other options: choose another --out, or move that folder away"
            )


def _essence(config: RunConfig, learns_to_allocate: bool) -> dict[str, Any]:
    """The parts of a configuration that influence what is learned, as JSON data (so that tuples compare as lists)."""
    parts = json.loads(json.dumps(asdict(config)))
    options = parts["options"]
    del options["report"]
    if not learns_to_allocate:
        options["allocator"] = {name: options["allocator"][name] for name in ("period", "play_period")}
        del options["exploration"]["proposal"], options["exploration"]["subtask"]
    return parts


@dataclass(frozen=True)
class Budget:
    """Preset, seeds and steps of the runs of a figure."""

    preset: str = "fast"
    seeds: tuple[int, ...] | None = None
    """None: the default seeds of the figure."""
    steps: int | None = None
    """None: the steps of the preset."""

    def seeds_of(self, figure: Figure, arm: Arm) -> tuple[int, ...]:
        """The given seeds; by default as many as the figure has, or fewer if the arm has fewer."""
        return self.seeds or tuple(range(min(figure.seeds, arm.seeds or figure.seeds)))

    def points_of(self, figure: Figure, case: Case) -> list[tuple[int, int]]:
        """For each point of a case, the seeds of the run that acts and of the run that allocates.

        Empty for a case with the allocator of another seed if there is only one seed.
        """
        seeds = self.seeds_of(figure, case.arm)
        if not case.other_seed:
            return [(seed, seed) for seed in seeds]
        return [(seed, other) for seed, other in zip(seeds, seeds[1:] + seeds[:1], strict=True) if seed != other]


def plan(figures: Iterable[Figure], budget: Budget, out: Path) -> list[PlannedRun]:
    """The runs that figures need, each once, in the order of seeds: so that early on, all methods have some results."""
    found: dict[str, tuple[int, PlannedRun]] = {}
    for figure in figures:
        if misfit := figure.misfit(budget.preset, budget.steps):
            raise ValueError(misfit)
        for arm in figure.arms:
            for seed in budget.seeds_of(figure, arm):
                name = arm.run_name(budget.preset, seed)
                run = PlannedRun(RunFolder(out / "runs" / name), arm.config(budget.preset, seed, budget.steps))
                found.setdefault(name, (seed, run))
    return [run for _, run in sorted(found.values(), key=lambda entry: entry[0])]


def check_jobs(jobs: int) -> None:
    """Raise a ValueError unless the number of jobs is at least 1."""
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")


def time_for(runs: Iterable[PlannedRun], jobs: int) -> float:
    """Estimated minutes left for all runs, on 2 cores."""
    return sum(run.minutes for run in runs) / (SPEEDUP if jobs > 1 else 1)


def train_all(runs: list[PlannedRun], jobs: int, console: Console) -> list[str]:
    """Train all unfinished runs, `jobs` at a time, each in its own process; returns the names of failed runs and why.

    Raises `Interrupted` if asked to stop: the runs save checkpoints, and the next call resumes them.
    """
    check_jobs(jobs)
    for run in runs:
        run.check()
    waiting = [run for run in runs if not run.done]
    seats = share_out_cores(jobs)
    working: dict[PlannedRun, Worker] = {}
    failed: list[str] = []
    with stop_on_signal() as asked_to_stop, Overview(waiting, len(runs), jobs, console) as overview:
        try:
            while waiting or working:
                while waiting and seats and not asked_to_stop():
                    run = waiting.pop(0)
                    overview.begin(run)
                    working[run] = launch(run, seats.pop(0))
                for run in [run for run, worker in working.items() if worker.process.poll() is not None]:
                    worker = working.pop(run)
                    seats.append(worker.cores)
                    if worker.process.returncode:
                        failed.append(f"{run.name}: {_last_words(run)}")
                    overview.end(run)
                if asked_to_stop():
                    console.print(f"stopping: {len(working)} runs save where they are")
                    words = ["stopped; everything is saved: the same command goes on from here", *failed]
                    raise Interrupted("; failed: ".join(words))
                overview.show(list(working))
                time.sleep(POLL_SECONDS)
        finally:  # in any case, no process is left running
            for worker in working.values():
                worker.process.terminate()
            for worker in working.values():
                worker.process.wait()
    return failed


class Worker(NamedTuple):
    """The process of a run, and its cores."""

    process: "subprocess.Popen[bytes]"
    cores: frozenset[int]


def share_out_cores(jobs: int) -> list[frozenset[int]]:
    """Divide the cores among jobs: two runs that compete for two cores are slower than two with a core each.

    With fewer cores than jobs, all jobs share all cores; if the system does not report cores, the sets are empty.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    share = len(cores) // jobs
    return [frozenset(cores[job * share : (job + 1) * share] or cores) for job in range(jobs)]


def launch(run: PlannedRun, cores: frozenset[int]) -> Worker:
    """Start or resume a run in a process of a new session, so that Ctrl-C does not reach it directly."""
    if run.state == "new":
        run.folder.create(run.config)
    command = [sys.executable, "-m", "alma", "resume", str(run.folder.path), "--quiet"]
    with _log(run).open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    if cores:
        with suppress(OSError):  # the process may have ended already; cores only affect speed
            os.sched_setaffinity(process.pid, cores)
    return Worker(process, cores)


def _log(run: PlannedRun) -> Path:
    return run.folder.path / "train.log"


def _last_words(run: PlannedRun) -> str:
    lines = _log(run).read_text(errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'no word'} (see {_log(run)})"


def clock(minutes: float) -> str:
    """Minutes formatted as hours and minutes."""
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02d} min" if hours else f"{rest} min"


class Overview:
    """Progress bars for all runs together and for each running one; plain lines without a terminal."""

    def __init__(self, waiting: list[PlannedRun], total: int, jobs: int, console: Console) -> None:
        self.total, self.done, self.console = total, total - len(waiting), console
        self.expected = time_for(waiting, jobs)
        self.left = {run: run.minutes for run in waiting}
        self.at_first = sum(self.left.values())
        self.began = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self.whole = self.progress.add_task("all runs", total=self.at_first or 1.0, note="")
        self.bars: dict[PlannedRun, TaskID] = {}

    def __enter__(self) -> "Overview":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def begin(self, run: PlannedRun) -> None:
        self.bars[run] = self.progress.add_task(run.name, total=run.config.options.steps, note="")
        self._say(f"begin {run.name}")

    def end(self, run: PlannedRun) -> None:
        self.progress.remove_task(self.bars.pop(run))
        if run.done:
            self.done += 1
        else:  # it failed: its work counts neither as left nor as done
            self.at_first -= self.left[run]
        self.left[run] = 0.0
        self._say(f"end   {run.name}")

    def show(self, working: list[PlannedRun]) -> None:
        for run in working:
            step = run.step
            self.left[run] = run.minutes
            self.progress.update(self.bars[run], completed=step, note=f"{step / 1e6:.2f}M steps")
        self.progress.update(
            self.whole,
            completed=self.at_first - sum(self.left.values()),
            note=f"{self.done}/{self.total} runs, {self.time_left}",
        )

    @property
    def time_left(self) -> str:
        """Estimated time left, by the speed so far; at the beginning, by the table of training times."""
        left = sum(self.left.values())
        worked, took = self.at_first - left, (time.monotonic() - self.began) / 60
        return f"{clock(left * took / worked if worked > 1 else self.expected)} left"

    def _say(self, text: str) -> None:
        if not self.console.is_terminal:
            self.console.print(f"{text} ({self.done}/{self.total} runs done, {self.time_left})")
