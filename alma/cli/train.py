"""`alma train`: a run, or several, each in a folder of its own."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from alma.cli.arguments import PresetOrFile, Switch, parse_seeds, parse_setting
from alma.cli.check import check_own_tasks
from alma.cli.consoles import console, messages
from alma.cli.launching import LaunchOptions, results_table
from alma.cli.mirrors import FLAT, Hidden
from alma.cli.parsing import HELP, errors_name_help, parse, read
from alma.cli.sharing import SharingOptions
from alma.cli.training import train_in, train_together_in
from alma.launch.job import Job
from alma.launch.launcher import train_all
from alma.runs.config import RunConfig
from alma.runs.distributed import writer_first
from alma.runs.folder import RunFolder
from alma.runs.loop import TrainingFailed
from alma.runs.memory import check_room
from alma.runs.sinks import require_wandb
from alma.training.options import TrainingOptions
from alma.training.preset_file import find_preset, preset_stem
from alma.training.presets import FAST, with_actors

OF_BOTH = (
    "networks",
    "optimiser",
    "clip",
    "popart",
    "final_rate",
    "falls_from",
    "target_rate",
    "target_episodes",
    "reward_scale",
)

ADVANCED = (
    *(f"{level}.{name}" for level in ("actors", "allocator") for name in OF_BOTH),
    *(f"actors.{name}" for name in ("window", "trace_decay", "ends", "next_allocation", "imagination", "advice")),
    *(f"allocator.{name}" for name in ("updates", "entropy_proposals", "max_age", "exploration")),
    *(f"collection.{name}" for name in ("decisions", "episodes_per_update")),
    *(f"exploration.{name}" for name in ("persistence", "proposal", "subtask")),
    "report",
)
"""Options for the paper's preset, ablations and fine tuning: `alma train --help` is about the others."""

DETAILS = (
    *(f"launch.{name}" for name in ("cores", "memory", "gpus", "address", "slurm")),
    *(f"sharing.{name}" for name in ("distributed", "coordinator", "processes", "process")),
    "together",
)
"""Options of the resources of runs and of their processes, which `alma train --help` leaves out as well."""


@dataclass(frozen=True)
class Train:
    """Train a method on a task, into a folder of its own."""

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """Name of the task (`alma tasks` lists them), or your own as module:Class."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """Option of the task, such as --set agents=3; may be repeated. `alma tasks` lists them."""
    method: str = "alma"
    """Method to train (`alma methods` lists them), or your own as module:NAME."""
    actors: Literal["aqmix", "refil"] | None = None
    """Loss of the actors: the TD loss of the mixed values (aqmix), or also that of REFIL's imagined groups (refil). If
    not given, as the preset has it for the task."""
    preset: PresetOrFile = "fast"
    """Preset that all options below start from: fast (minutes on few cores), long (half an hour), faithful (the paper's
    networks and losses, otherwise like fast), paper (everything as in the paper; days), tiny (a first look), or a
    preset file (.toml, .json)."""
    seed: int | None = None
    """Random seed of the run; 0 if not given."""
    seeds: str | None = None
    """Several seeds (0..4 or 1,5,7), a folder each; finished runs are kept, others resumed."""
    together: Switch = False
    """Train all --seeds in one program: for accelerators. On processor cores, --jobs is faster."""
    out: Path | None = None
    """Folder of the run. If not given: runs/TASK-METHOD-PRESET-SEED, with --actors after METHOD. With --seeds, -SEED is
    appended."""
    force: bool = False
    """Delete an earlier run in the folder."""
    quiet: bool = False
    """Print lines instead of a live display."""
    wandb: bool = False
    """Log to Weights & Biases too (needs the package wandb)."""
    launch: Annotated[LaunchOptions, FLAT] = field(default_factory=LaunchOptions)
    """Where runs are trained, and the resources of each."""
    sharing: Annotated[SharingOptions, FLAT] = field(default_factory=SharingOptions)
    """The devices and processes that one run is trained on."""
    help_all: Switch = False
    """Show all options, also those of reports, resources, processes, ablations and fine tuning."""
    options: Annotated[TrainingOptions, FLAT] = FAST

    def __post_init__(self) -> None:
        if self.seed is not None and self.seeds is not None:
            raise ValueError("give either --seed or --seeds, not both")
        if self.together and self.seeds is None:
            raise ValueError("--together is for several --seeds")
        if self.together and (self.wandb or self.launch != LaunchOptions() or self.sharing != SharingOptions()):
            raise ValueError("--together trains in one process on one device: leave out --wandb, --engine, --devices")
        if self.sharing.distributed and (self.seeds is not None or self.launch != LaunchOptions()):
            raise ValueError("--distributed trains one run: leave out --seeds, and start its processes yourself")
        self.configs()  # complains about seeds and settings that make no sense

    def run(self) -> None:
        if self.wandb:
            require_wandb()  # before anything is written
        configs = self.configs()
        jobs = [
            Job(RunFolder(self._folder(config, several=len(configs) > 1)), config, self._arguments())
            for config in configs
        ]
        # Errors of the task, the method and the options are raised before anything is written.
        check_own_tasks([job.config for job in jobs if self.force or not job.folder.config.exists()])
        configs[0].make_trainer()
        if self.together:
            self._train_together(jobs)
        elif self.seeds is not None or self.launch != LaunchOptions():
            if self.launch.engine == "local":
                check_room(configs[0], min(self.launch.parallel, len(configs)))
            self._launch(jobs)
        else:
            [job] = jobs
            devices = self.sharing.begin(job.config)
            check_room(job.config)
            writer_first(lambda: job.folder.create(job.config, self.force))
            train_in(job.folder, job.config, self.quiet, self.wandb, devices)

    def _launch(self, jobs: list[Job]) -> None:
        """Train several runs, or one somewhere else."""
        self._prepare(jobs)
        failed = train_all(jobs, self.launch.make(jobs[0].folder.path.parent), messages)
        console.print(results_table(jobs))
        if failed:
            raise TrainingFailed("; ".join(failed))

    def _train_together(self, jobs: list[Job]) -> None:
        """Train all unfinished runs in one program."""
        self._prepare(jobs)
        unfinished = [job for job in jobs if not job.done]
        for job in unfinished:
            if job.state == "new":
                job.folder.create(job.config)
        if unfinished:
            train_together_in([job.folder for job in unfinished], [job.config for job in unfinished], self.quiet)
        console.print(results_table(jobs))

    def _prepare(self, jobs: list[Job]) -> None:
        """Make sure that the folders hold these runs or nothing; with --force, start them over."""
        for job in jobs:
            job.check(self.force)
        for job in jobs if self.force else []:
            job.folder.create(job.config, self.force)

    def _arguments(self) -> tuple[str, ...]:
        """Arguments of `alma resume` for the processes that train the runs, besides the folder."""
        return (*self.sharing.arguments, *(("--wandb",) if self.wandb else ()))

    def configs(self) -> list[RunConfig]:
        """The configurations of the runs, one for each seed."""
        settings = dict(parse_setting(setting) for setting in self.set)
        seeds = [self.seed or 0] if self.seeds is None else parse_seeds(self.seeds)
        options = with_actors(self.options, self.actors)
        base, _ = find_preset(self.preset, self.task)
        return [RunConfig(self.task, settings, self.method, base, seed, options) for seed in seeds]

    def _folder(self, config: RunConfig, several: bool) -> Path:
        if self.out is None:
            actors = [] if self.actors is None else [self.actors]
            name = "-".join([config.task, config.method, *actors, preset_stem(self.preset), str(config.seed)])
            return Path("runs") / name.replace(":", "-")
        return self.out.with_name(f"{self.out.name}-{config.seed}") if several else self.out


HIDDEN: Hidden = frozenset((*(f"options.{name}" for name in ADVANCED), *DETAILS))


def read_train(arguments: list[str]) -> Train:
    """The command that the arguments of `alma train` ask for.

    They are parsed twice: to learn the task and the preset, and again with flags that start from the options which that
    preset has for that task.
    """
    without_help = [argument for argument in arguments if argument not in HELP]
    asks_for_help = without_help != arguments
    with errors_name_help("alma train"):
        asked, unknown = parse(Train, without_help, "alma train")
    if asked.task is None and not (unknown or asks_for_help or asked.help_all):
        raise ValueError("name a task, for example: alma train save-the-city (see alma train --help)")
    defaults = {"options": find_preset(asked.preset, asked.task or "")[1]}
    if asked.help_all:
        return read(Train, [*arguments, "--help"], "alma train", defaults)
    return read(Train, arguments, "alma train", defaults, HIDDEN if asks_for_help else frozenset())
