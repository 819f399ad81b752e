"""The command line: a thin layer over the library."""

import json
import sys
import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import jax
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from alma import runtime
from alma.allocation import allocator_by_name
from alma.benchmark import benchmark_environment, benchmark_training
from alma.configuration import RunConfig, check_seed
from alma.evaluation import Players, Results, check_episodes, play_episodes, policy_by_name, summarise
from alma.methods import METHODS
from alma.policy import LearnedPolicy, check_fits, load, transplant
from alma.presets import FAST, FOR_TASKS, PRESETS, TrainingOptions, preset, with_actors
from alma.pretrained import DEFAULT, locate
from alma.registry import make, option_fields, task_names
from alma.report.animation import ENDINGS, check_out, write_animation
from alma.report.progress import make_display
from alma.reproduce.figures import find_figures
from alma.reproduce.plots import check_plots
from alma.reproduce.running import Budget, PlannedRun, clock, plan, train_all
from alma.reproduce.scores import curves_of, score_all
from alma.reproduce.writing import missing, write_figure
from alma.run import Interrupted, Run, RunFolder, extend
from alma.task import Task
from alma.trainer import Trainer
from alma.watch.page import PAGE, write_page
from alma.watch.picture import draw_frames
from alma.watch.record import record
from alma.watch.story import Cast, Side, tell

console = Console()
notes = Console(stderr=True)
"""Progress and remarks go here, so that standard output stays clean for results."""


@dataclass(frozen=True)
class TaskChoice:
    """Which task, and what is different about it."""

    task: tyro.conf.Positional[str]
    """Name of the task; `alma tasks` lists them."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """An option of the task; may be repeated: --set agents=3 --set max_steps=100"""

    def make(self) -> Task:
        return make(self.task, **dict(parse_setting(setting) for setting in self.set))


def parse_setting(setting: str) -> tuple[str, Any]:
    """Split `name=value`; values are written as in JSON, pairs also as `2,5`, and plain words are words."""
    name, equals, text = setting.partition("=")
    if not name or not equals:
        raise ValueError(f"write options as name=value, not {setting!r}")
    for attempt in (text, f"[{text}]"):
        try:
            value = json.loads(attempt)
        except json.JSONDecodeError:
            continue
        return name, tuple(value) if isinstance(value, list) else value
    return name, text


@dataclass(frozen=True)
class Play(TaskChoice):
    """Play episodes with scripted players; print how they went, or draw one."""

    policy: str = "scripted"
    """Who acts: one of the task's scripted policies, or `random`."""
    allocation: str = "heuristic"
    """Who allocates: `heuristic`, `heuristic:NAME`, `random`, or `fixed:0,0,1` with a subtask for each agent."""
    period: int = 5
    """Allocate anew after so many steps (and whenever a subtask finishes or appears)."""
    episodes: int = 1
    """How many episodes to play."""
    seed: int = 0
    """Where randomness starts."""
    out: Path | None = None
    """Draw the first episode into this file: .gif, .mp4, or .png for numbered frames."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        task = self.make()
        players = Players(policy_by_name(task, self.policy), allocator_by_name(task, self.allocation), self.period)
        check_seed(self.seed)
        if self.out:
            check_drawing(task)
            check_out(self.out)
        summary = summarise(play_with_progress(task, players, self.episodes, self.seed))
        if self.json:
            names = {"task": self.task, "policy": self.policy, "allocation": self.allocation, "seed": self.seed}
            print(json.dumps({**names, **summary}))
        else:
            console.print(summary_table(summary))
        if self.out:
            print(f"episode drawn to {draw_episode(task, players, self.seed, self.out)}", file=sys.stderr)


@dataclass(frozen=True)
class Train:
    """Train a method on a task, into a folder of its own."""

    task: tyro.conf.Positional[str | None] = None
    """Name of the task; `alma tasks` lists them. Not needed with --resume."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """An option of the task; may be repeated: --set agents=3 --set max_steps=100"""
    method: str = "alma"
    """What to train; `alma methods` lists them."""
    actors: Literal["aqmix", "refil"] | None = None
    """How actors learn: by attention QMIX, or with imagined groups besides. The paper's choice if not given."""
    preset: Literal["fast", "paper", "tiny"] = "fast"
    """Where the options below start from: ours for few cores, the paper's, or one for a first look."""
    seed: int = 0
    """Where randomness starts."""
    seeds: str | None = None
    """Several seeds, one run after the other: `0..4`, or `1,5,7`. Each gets its own folder."""
    out: Path | None = None
    """The run's folder; runs/TASK-METHOD-PRESET-SEED if not given (ACTORS follow METHOD where those are given). With
    several seeds, `-SEED` is added."""
    resume: Path | None = None
    """Go on with the run of this folder; only --steps may be given besides, to train for longer."""
    force: bool = False
    """Delete what an earlier run left in the folder."""
    quiet: bool = False
    """Lines instead of a live display."""
    wandb: bool = False
    """Log to Weights & Biases too (an extra)."""
    options: Annotated[TrainingOptions, tyro.conf.arg(name="")] = FAST

    def run(self) -> None:
        if self.resume:
            self._resume(self.resume)
            return
        if self.task is None:
            raise ValueError("name a task, for example: alma train save-the-city (or --resume FOLDER)")
        settings = dict(parse_setting(setting) for setting in self.set)
        seeds = [self.seed] if self.seeds is None else parse_seeds(self.seeds)
        options = with_actors(self.options, self.actors)
        configs = [RunConfig(self.task, settings, self.method, self.preset, seed, options) for seed in seeds]
        folders = [RunFolder(self._folder(config, several=len(seeds) > 1)) for config in configs]
        configs[0].make_trainer()  # complains before anything is written
        for folder in folders:
            folder.check_free(self.force)
        for folder, config in zip(folders, configs, strict=True):
            folder.create(config, self.force)
            self._train(folder, config)

    def _folder(self, config: RunConfig, several: bool) -> Path:
        if self.out is None:
            actors = [] if self.actors is None else [self.actors]
            name = "-".join([config.task, config.method, *actors, config.preset, str(config.seed)])
            return Path("runs") / name.replace(":", "-")
        return self.out.with_name(f"{self.out.name}-{config.seed}") if several else self.out

    def _resume(self, path: Path) -> None:
        given = replace(self, resume=None, quiet=False, wandb=False, options=FAST)
        only_steps = replace(FAST, steps=self.options.steps) == self.options
        if given != Train() or not only_steps:
            raise ValueError(
                "a resumed run keeps its configuration: give only --steps with --resume, to go on for longer"
            )
        folder = RunFolder(path)
        config = folder.read_config()
        if self.options.steps != FAST.steps:
            config = extend(folder, config, self.options.steps)
        self._train(folder, config)

    def _train(self, folder: RunFolder, config: RunConfig) -> None:
        notes.print(f"training {config.method} on {config.task}, seed {config.seed}, into {folder.path}")
        with make_display(notes, self.quiet) as display:
            result = Run(folder, config, display, self.wandb).train()
        console.print(summary_table(result["evaluation"]))
        minutes = result["training_minutes"]
        console.print(f"{result['step']:,} steps in {minutes:.1f} minutes of training; all in {folder.path}")


@dataclass(frozen=True)
class LearnedChoice:
    """What a run has learned, and what is different about playing it."""

    policy: tyro.conf.Positional[str] = DEFAULT
    """A run folder, weights (.safetensors), or `pretrained:NAME`: weights that come with alma."""
    seed: int = 1_000_000
    """Where randomness starts."""
    task: str | None = None
    """Another name of the task, where it was moved since: what was learned must fit."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """An option of the task that differs from training; may be repeated."""
    actors: str | None = None
    """Let the actors of this run act instead, as they are."""
    allocator: str | None = None
    """Who allocates instead: `heuristic`, `heuristic:NAME`, `random`, `fixed:0,0,1`, `search` (the best by the
    critic of POLICY), or the folder or weights of another run."""

    def task_options(self, policy: LearnedPolicy) -> dict[str, Any]:
        return {**policy.config.task_options, **dict(map(parse_setting, self.set))}

    def make_task(self, policy: LearnedPolicy) -> Task:
        """The task to play, which what was learned must fit."""
        name = self.task or policy.config.task
        task = replace(policy.config, task=name, task_options=self.task_options(policy)).make_task()
        check_fits(policy.task.spec, task.spec)
        return task

    def make_players(self, policy: LearnedPolicy, task: Task) -> Players:
        if self.actors is None and self.allocator is None:
            return policy.players
        actors = load(self.actors) if self.actors else None
        return transplant(policy, actors, self.allocator and allocator_or_run(self.allocator), task)


def allocator_or_run(name: str, purpose: str = "allocate") -> LearnedPolicy | str:
    """An allocator by name as it is, and anything else as a run."""
    if name.partition(":")[0] in ("heuristic", "random", "fixed", "search"):
        return name
    if not locate(name).exists():
        raise ValueError(
            f"there is no run {name!r} to {purpose}: name a run folder or weights, or choose from search, random, "
            "heuristic, heuristic:NAME, fixed:SUBTASKS"
        )
    return load(name)


@dataclass(frozen=True)
class Evaluate(LearnedChoice):
    """Play greedy episodes with what a run has learned."""

    episodes: int = 512
    """How many episodes to play."""
    out: Path | None = None
    """Draw the first episode into this file: .gif, .mp4, or .png for numbered frames."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        check_seed(self.seed)
        policy = load(self.policy)
        task = self.make_task(policy)
        players = self.make_players(policy, task)
        if self.out:
            check_drawing(task)
            check_out(self.out)
        summary = summarise(play_with_progress(task, players, self.episodes, self.seed))
        if self.json:
            names = {
                "policy": self.policy,
                "task": self.task or policy.config.task,
                "method": policy.config.method,
                "actors": self.actors or self.policy,
                "allocator": self.allocator or self.policy,
                "task_options": self.task_options(policy),
            }
            print(json.dumps({**names, "seed": self.seed, **summary}))
        else:
            console.print(summary_table(summary))
        if self.out:
            print(f"episode drawn to {draw_episode(task, players, self.seed, self.out)}", file=sys.stderr)


@dataclass(frozen=True)
class Watch(LearnedChoice):
    """Write a page that replays greedy episodes with everything the players thought, and open it."""

    episodes: int = 3
    """How many episodes to show: the first ones that `alma evaluate` plays with this seed. Pictures show the first."""
    against: str | None = None
    """Show another run (its folder or weights) beside it, on the same initial states; or the same actors under
    another allocator: `heuristic`, `heuristic:NAME`, `random`, `fixed:0,0,1`, `search`."""
    out: Path = Path("replay.html")
    """The page (.html), or pictures of the first episode: .gif, .mp4, or .png for numbered frames. A file that
    exists is replaced."""
    open: bool = True
    """Open the page in the browser."""

    def run(self) -> None:
        check_seed(self.seed)
        check_episodes(self.episodes)
        check_out(self.out, (PAGE, *ENDINGS))
        policy = load(self.policy)
        task = self.make_task(policy)
        casts = [self._cast(policy, task)]
        if self.against:
            casts.append(self._other(policy, task, self.against))
        if self.out.suffix.lower() != PAGE:
            check_drawing(task)
            frames = draw_frames(task, [self._play(task, cast, 1) for cast in casts])
            print(f"episode drawn to {write_animation(self.out, frames)}")
            return
        sides = [self._play(task, cast, self.episodes) for cast in casts]
        print(f"page written to {write_page(self.out, tell(task, sides, self.seed))}")
        if self.open and not webbrowser.open(self.out.resolve().as_uri()):
            notes.print("there is no browser to open it with: open the file yourself")

    def _play(self, task: Task, cast: Cast, episodes: int) -> Side:
        with notes.status(f"playing {cast.label}; the first time, compiling takes a while"):
            return Side(cast, record(task, cast.players, episodes, self.seed))

    def _cast(self, policy: LearnedPolicy, task: Task) -> Cast:
        label = self.policy if self.actors is None else f"{self.policy}, actors of {self.actors}"
        return Cast(self.make_players(policy, task), label, policy.config.method, self.allocator or "")

    def _other(self, policy: LearnedPolicy, task: Task, name: str) -> Cast:
        """Who is watched beside them: the same actors under another allocator, or another run."""
        other = allocator_or_run(name, "watch against")
        if isinstance(other, str):
            return replace(self, allocator=name)._cast(policy, task)
        check_fits(other.task.spec, task.spec)
        return Cast(other.players, name, other.config.method)


@dataclass(frozen=True)
class Reproduce:
    """Train what a figure of the paper needs, play it, and write the figure with its statistics.

    Runs that are finished are kept, and those that were interrupted go on: stop it and call it again as you like.
    """

    figure: tyro.conf.Positional[str]
    """`save-the-city`, `starcraft`, `spread`, `transplant`, `robustness`, `ablations`, or `all`."""
    preset: Literal["fast", "paper", "tiny"] = "fast"
    """What runs are trained with."""
    seeds: str | None = None
    """`0..4`, or `1,5,7`; the figure's own if not given."""
    steps: int | None = None
    """Environment steps of every run; the preset's if not given."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="METHOD [METHOD ...]")] = ()
    """Only these methods."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING [SETTING ...]")] = ()
    """Only these settings, such as `sz-disadvantage`."""
    jobs: int = 1
    """Runs to train at the same time."""
    out: Path = Path("results")
    """Folder for the runs (OUT/runs, which figures share) and the figures (OUT/FIGURE)."""
    dry_run: bool = False
    """Only say what would be run, and how long it would take."""
    no_train: bool = False
    """Only play and show the runs that are finished."""
    no_plots: bool = False
    """Write tables and data, but no pictures."""

    def run(self) -> None:
        figures = [figure.only(self.methods, self.settings) for figure in find_figures(self.figure)]
        seeds = None if self.seeds is None else tuple(parse_seeds(self.seeds))
        budget = Budget(self.preset, seeds, self.steps)
        runs = plan(figures, budget, self.out)
        for run in runs:
            run.check()
        if self.dry_run:
            console.print(plan_table(runs, self.jobs))
            return
        if not self.no_plots:
            check_plots()
        if not self.no_train:
            train_all(runs, self.jobs, notes)
        for figure in figures:
            scores = score_all(figure, budget, self.out, notes)
            curves = curves_of(figure, budget, self.out)
            files = write_figure(figure, budget, scores, curves, self.out, plots=not self.no_plots)
            absent = missing(figure, budget, scores)
            without = f" ({len(absent)} points are missing: see summary.json)" if absent else ""
            names = ", ".join(file.name for file in files)
            console.print(f"{figure.name}: {names} in {files[0].parent}{without}", soft_wrap=True)


def plan_table(runs: list[PlannedRun], jobs: int) -> Table:
    """What there is to do."""
    left = sum(run.minutes for run in runs)
    table = Table(caption=f"about {clock(left / jobs)} on 2 cores" + (f" with {jobs} jobs" if jobs > 1 else ""))
    for column in ("run", "state", "steps", "about"):
        table.add_column(column, justify="left" if column in ("run", "state") else "right")
    for run in runs:
        table.add_row(run.name, run.state, f"{run.config.options.steps:,}", clock(run.minutes))
    return table


@dataclass(frozen=True)
class BenchEnv:
    """Environment steps per second with random actions, automatic resets and the whole view."""

    choice: Annotated[TaskChoice, tyro.conf.arg(name="")]
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        runtime.one_device_per_core()
        result = benchmark_environment(self.choice.make(), report=lambda text: notes.print(text, style="dim"))
        if self.json:
            print(json.dumps(result))
            return
        table = Table(title=f"{result['task']} on {result['devices']} x {result['device']}")
        for column in ("environments", "steps per second", "slowest - fastest", "compile, s"):
            table.add_column(column, justify="right")
        for batch in result["batches"]:
            spread = f"{batch['slowest']:,} - {batch['fastest']:,}"
            row = (batch["environments"], f"{batch['steps_per_second']:,}", spread, batch["compile_seconds"])
            table.add_row(*map(str, row))
        console.print(table)
        console.print(
            f"state {result['state_bytes']} bytes, view {result['view_bytes']} bytes, "
            f"peak memory {result['peak_memory_mb']} MB"
        )


@dataclass(frozen=True)
class BenchTrain:
    """Speed of training: minutes for a million environment steps, and seconds for an update of each level."""

    choice: Annotated[TaskChoice, tyro.conf.arg(name="")]
    method: str = "alma"
    """What to train; `alma methods` lists them."""
    actors: Literal["aqmix", "refil"] | None = None
    """How actors learn: by attention QMIX, or with imagined groups besides. The paper's choice if not given."""
    preset: Literal["fast", "paper", "tiny"] = "fast"
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        result = benchmark_training(
            Trainer(self.choice.make(), with_actors(preset(self.preset, self.choice.task), self.actors), self.method),
            report=lambda text: notes.print(text, style="dim"),
        )
        result = {"preset": self.preset, **result}
        if self.json:
            print(json.dumps(result))
            return
        table = Table(title=f"{result['method']} on {result['task']}, {self.preset}", show_header=False)
        for name, value in result.items():
            table.add_row(name.replace("_", " "), str(value))
        console.print(table)


@dataclass(frozen=True)
class Bench:
    """Measure how fast things run on this machine."""

    what: Annotated[
        Annotated[BenchEnv, tyro.conf.subcommand("env")] | Annotated[BenchTrain, tyro.conf.subcommand("train")],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> None:
        self.what.run()


@dataclass(frozen=True)
class Methods:
    """List the methods that can be trained."""

    def run(self) -> None:
        table = Table(show_header=False, box=None)
        for name, method in METHODS.items():
            table.add_row(name, method.summary)
        console.print(table)


@dataclass(frozen=True)
class Tasks:
    """List the tasks and their options."""

    def run(self) -> None:
        for name in task_names():
            table = Table(title=name, title_justify="left", show_header=False, box=None)
            for field in option_fields(name):
                table.add_row(field.name, str(field.default))
            console.print(table)


@dataclass(frozen=True)
class Demo:
    """Train ALMA on SaveTheCity for a few minutes, say how often it is solved before and after, and draw an episode."""

    out: Path = Path("demo")
    """Folder for the run and the pictures; an earlier demo there is replaced."""
    steps: int = 1_000_000
    """Environment steps to train for."""
    episodes: int = 256
    """Episodes of the evaluations before and after."""
    preset: Literal["fast", "tiny"] = "fast"
    """What to train with; `tiny` only shows that everything works."""

    def run(self) -> None:
        notes.print("Firefighters, builders and generalists learn to save a city, and who is sent where.")
        preset = PRESETS[self.preset]
        report = replace(preset.report, evaluate_every=102_400, episodes=64, final_episodes=self.episodes)
        options = replace(preset, steps=self.steps, report=report)
        config = RunConfig("save-the-city", preset=self.preset, options=options)
        folder = RunFolder(self.out / "run")
        folder.create(config, force=True)
        trainer = config.make_trainer()
        untrained = trainer.players(trainer.init(jax.random.key(config.seed)))
        before = play_episodes(trainer.task, untrained, self.episodes).success.mean()
        with make_display(notes) as display:
            result = Run(folder, config, display).train()
        console.print(summary_table(result["evaluation"]))
        after = result["evaluation"]["success_rate"]
        console.print(f"solved {before:.1%} before and {after:.1%} after {result['training_minutes']:.1f} minutes")
        picture = draw_episode(trainer.task, load(folder.path).players, 0, self.out / "save-the-city.gif")
        console.print(f"an episode with what was learned: {picture}")
        console.print(f"play more of them: alma evaluate {folder.path} --episodes 512")
        console.print(f"see what they think: alma watch {folder.path}")


def play_with_progress(task: Task, players: Players, episodes: int, seed: int) -> Results:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed}/{task.total} episodes"),
        BarColumn(),
        TextColumn("{task.fields[solved]}"),
        TimeElapsedColumn(),
        console=notes,
        transient=True,
        disable=episodes == 1,
    ) as progress:
        bar = progress.add_task("", total=episodes, solved="compiling")

        def update(played: int, results: Results) -> None:
            progress.update(bar, completed=played, solved=f"solved {results.success.mean():.0%}")

        return play_episodes(task, players, episodes, seed, parallel=64, on_progress=update)


def check_drawing(task: Task) -> None:
    """Complain about a task that cannot be drawn, before any work is done."""
    if type(task).scene is Task.scene:
        raise ValueError(f"the task {task.spec.name!r} does not say what it looks like: implement `scene` to draw it")


def summary_table(summary: dict[str, Any]) -> Table:
    table = Table()
    for column in ("team size", "episodes", "solved", "95 % interval"):
        table.add_column(column, justify="right")
    rows = {**summary["by_team_size"], "all": summary}
    for name, row in rows.items():
        low, high = row["interval"]
        table.add_row(name, str(row["episodes"]), f"{row['success_rate']:.1%}", f"{low:.1%} - {high:.1%}")
    table.caption = f"mean return {summary['mean_return']:.2f}, mean length {summary['mean_length']:.1f}"
    return table


def draw_episode(task: Task, players: Players, seed: int, out: Path) -> str:
    """Play one episode and write its pictures; the answer says where."""
    side = Side(Cast(players), record(task, players, 1, seed))
    return write_animation(out, draw_frames(task, [side]))


def parse_seeds(text: str) -> list[int]:
    """`0..4` is five seeds; `1,5,7` is three."""
    first, dots, last = text.partition("..")
    try:
        seeds = list(range(int(first), int(last) + 1)) if dots else [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"write seeds as 0..4 or 1,5,7, each once, not {text!r}")
    return seeds


def preset_of(arguments: list[str]) -> TrainingOptions:
    """The preset that is asked for, so that the other flags start from it and --help shows its values."""
    task = next((argument for argument in arguments if argument in FOR_TASKS), "")
    for position, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == "--preset":
            value = value or next(iter(arguments[position + 1 :]), "")
            return preset(value if value in PRESETS else "fast", task)
    return preset("fast", task)


def commands(arguments: list[str]) -> Any:
    """All commands, as one type."""
    train = Train(options=preset_of(arguments))
    return Union[  # noqa: UP007
        Annotated[Demo, tyro.conf.subcommand("demo")],
        Annotated[Train, tyro.conf.subcommand("train", default=train)],
        Annotated[Evaluate, tyro.conf.subcommand("evaluate")],
        Annotated[Watch, tyro.conf.subcommand("watch")],
        Annotated[Play, tyro.conf.subcommand("play")],
        Annotated[Reproduce, tyro.conf.subcommand("reproduce")],
        Annotated[Bench, tyro.conf.subcommand("bench")],
        Annotated[Methods, tyro.conf.subcommand("methods")],
        Annotated[Tasks, tyro.conf.subcommand("tasks")],
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run a command; errors that a user can mend are told in one line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        command = tyro.cli(
            commands(arguments),
            prog="alma",
            description="Multi-agent learning for composite tasks.",
            args=arguments,
        )
        command.run()
    except (OSError, ValueError) as error:
        sys.exit(f"alma: {error}")
    except Interrupted as stopped:
        notes.print(str(stopped))
        sys.exit(130)
