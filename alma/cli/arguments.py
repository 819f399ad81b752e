"""Arguments that several commands share: a task with options, a trained policy, seeds."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import tyro

from alma.cli.mirrors import Suggested
from alma.play.episodes import EVALUATION_SEED
from alma.play.team import Team, TeamParams
from alma.runs.config import check_seed
from alma.runs.policy import Policy, load
from alma.runs.pretrained import DEFAULT, locate
from alma.task.importing import Trust
from alma.task.registry import make
from alma.task.task import Task
from alma.training.presets import PRESETS

Switch: TypeAlias = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
"""A flag without its opposite: `--no-train` without `--no-no-train`."""

PRESETS_OR_FILE = tyro.conf.arg(metavar="{" + ",".join(PRESETS) + "}|FILE")

PresetOrFile: TypeAlias = Annotated[str, Suggested(tuple(PRESETS)), PRESETS_OR_FILE]
"""The name of a preset, or a preset file."""


@dataclass(frozen=True)
class TaskChoice:
    """A task and its options."""

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """Name of the task (`alma tasks` lists them), or your own as module:Class."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """Option of the task, such as --set agents=3; may be repeated. `alma tasks` lists them."""

    def __post_init__(self) -> None:
        self.task_options()  # complains about settings that make no sense

    def task_options(self) -> dict[str, Any]:
        return dict(map(parse_setting, self.set))

    def make(self) -> Task:
        return make(self.task, **self.task_options())


@dataclass(frozen=True)
class LearnedChoice:
    """A trained policy, and how it is played."""

    policy: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[POLICY]")] = DEFAULT
    """Folder of a run, file of weights (.safetensors), or `pretrained:NAME` for weights that come with alma."""
    seed: int = EVALUATION_SEED
    """Random seed of the episodes."""
    task: str | None = None
    """Name of the task, if it has another one now than when it was trained, such as a class of your own that moved."""
    set: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="OPTION=VALUE")] = ()
    """Option of the task that differs from training, such as --set agents=2; may be repeated."""
    actors: str | None = None
    """Play with other actors: `random`, a script of the task such as `scripted`, or those of another run (its folder or
    weights)."""
    allocator: str | None = None
    """Play with another allocator: `heuristic`, `heuristic:NAME`, `random`, `fixed:0,0,1` (a subtask for each agent),
    `search` (the best allocation by POLICY's critic), or that of another run (its folder or weights)."""
    trust: Switch = False
    """Import tasks and methods that files of runs name as module:Name: for files of people you trust."""

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for setting in self.set:
            parse_setting(setting)

    def task_options(self, policy: Policy) -> dict[str, Any]:
        return {**policy.config.task_options, **dict(map(parse_setting, self.set))}

    def load(self) -> Policy:
        """The policy, loaded."""
        return load(self.policy, trust=self.trusted, task=self.task)

    @property
    def trusted(self) -> Trust:
        """The code that may be imported because a file names it: the task of --task, or all with --trust."""
        return self.trust or frozenset(filter(None, (self.task,)))

    def make_task(self, policy: Policy) -> Task:
        """The task to play. Raises a ValueError if the policy does not fit it."""
        return policy.task_with(self.task_options(policy), self.task)

    def make_team(self, policy: Policy, task: Task) -> tuple[Team, TeamParams]:
        """The team that plays, and its parameters."""
        actors = self.actors and actors_or_run(self.actors, task, self.trusted)
        return policy.team_with(actors, self.allocator and allocator_or_run(self.allocator, self.trusted), task)


def actors_or_run(name: str, task: Task, trust: Trust) -> Policy | str:
    """A script of the task by name as it is, and anything else as a run."""
    scripts = ["random", *task.policies]
    if name in scripts:
        return name
    if not locate(name).exists():
        raise ValueError(
            f"there is no run {name!r} to act: name a run folder or weights, or choose from {', '.join(scripts)}"
        )
    return load(name, trust=trust)


def allocator_or_run(name: str, trust: Trust, purpose: str = "allocate") -> Policy | str:
    """An allocator by name as it is, and anything else as a run."""
    if name.partition(":")[0] in ("heuristic", "random", "fixed", "search"):
        return name
    if not locate(name).exists():
        raise ValueError(
            f"there is no run {name!r} to {purpose}: name a run folder or weights, or choose from search, random, "
            "heuristic, heuristic:NAME, fixed:SUBTASKS"
        )
    return load(name, trust=trust)


def parse_setting(setting: str) -> tuple[str, Any]:
    """Split `name=value`; values are written as in JSON, pairs also as `2,5` or `2..5`, and plain words are words."""
    name, equals, text = setting.partition("=")
    if not name or not equals:
        raise ValueError(f"write options as name=value, not {setting!r}")
    range_of_two = [] if "," in text else [f"[{text.replace('..', ',', 1)}]"]
    for attempt in (text, f"[{text}]", *range_of_two):
        try:
            value = json.loads(attempt)
        except json.JSONDecodeError:
            continue
        return name, tuple(value) if isinstance(value, list) else value
    return name, text


MOST_SEEDS = 10_000
"""Most runs that one command prepares."""


def parse_seeds(text: str) -> list[int]:
    """`0..4` is five seeds; `1,5,7` is three."""
    first, dots, last = text.partition("..")
    try:
        seeds = range(int(first), int(last) + 1) if dots else [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if len(seeds) > MOST_SEEDS:
        raise ValueError(f"seeds must be at most {MOST_SEEDS}, and {text!r} are {len(seeds)}")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"write seeds as 0..4 or 1,5,7, each once, not {text!r}")
    return list(seeds)
