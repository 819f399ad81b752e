"""The configuration of a run: one frozen dataclass that is stored as JSON."""

import dataclasses
import functools
import json
import platform
import subprocess
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from alma.files import brief
from alma.task import registry
from alma.task.importing import Trust, check_trusted
from alma.task.spec import LARGEST_INTEGER
from alma.task.task import Task
from alma.training import methods
from alma.training.methods import LearningTeam, make_team
from alma.training.options import TrainingOptions
from alma.training.preset_file import check_value, shortened
from alma.training.presets import preset
from alma.training.trainer import Trainer


def check_seed(seed: int) -> None:
    """Raise a ValueError unless JAX accepts the seed."""
    if not 0 <= seed <= LARGEST_INTEGER:
        raise ValueError(f"seed must lie between 0 and {LARGEST_INTEGER}, not {seed}")


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run."""

    task: str
    task_options: dict[str, Any] = field(default_factory=dict)
    method: str = "alma"
    preset: str = "fast"
    """The preset that the options started from; single options may differ from it."""
    seed: int = 0
    options: TrainingOptions = None  # type: ignore[assignment]
    """The hyperparameters; by default those of the preset for the task."""

    def __post_init__(self) -> None:
        default = preset(self.preset, self.task)
        if self.options is None:
            object.__setattr__(self, "options", default)
        check_seed(self.seed)

    @property
    def own_code(self) -> frozenset[str]:
        """The names of the task and the method if they are the user's own code, which has to be imported."""
        return frozenset(name for _, name in own_code(self.task, [self.method]))

    def make_task(self) -> Task:
        """Build the task."""
        # Tuples come back from JSON as lists.
        options = {
            name: tuple(value) if isinstance(value, list) else value for name, value in self.task_options.items()
        }
        return registry.make(self.task, **options)

    def make_team(self, task: Task | None = None) -> LearningTeam:
        """The team that is trained. Raises a ValueError if the method or an option does not fit the task."""
        return make_team(task or self.make_task(), self.options, self.method)

    def make_trainer(self) -> Trainer:
        """The trainer of this run. Raises a ValueError if the method or an option does not fit the task."""
        trainer = Trainer(self.make_task(), self.options, self.method)
        _ = trainer.team
        return trainer


def to_json(config: RunConfig) -> dict[str, Any]:
    """The configuration as JSON data, together with the versions of the software."""
    return {**dataclasses.asdict(config), "versions": versions()}


def learning_config(config: RunConfig) -> dict[str, Any]:
    """The part of a configuration that influences training: all but the steps and reports. As data read from JSON."""
    data = json.loads(json.dumps(dataclasses.asdict(config)))
    for name in ("steps", "report"):
        del data["options"][name]
    return data


def check_unedited(config: RunConfig, file: Path, trained: dict[str, Any], checkpoint: Path) -> None:
    """Raise a ValueError that names what differs if a checkpoint was trained with another configuration than a file's.

    Options that the version which wrote the checkpoint did not have count as their defaults.
    """
    try:
        before = _build(RunConfig, trained)
    except ValueError as error:
        raise ValueError(f"{checkpoint} has a configuration that cannot be read: {brief(error)}") from None
    changed = sorted(differences(learning_config(config), learning_config(before)))
    if changed:
        raise ValueError(
            f"{file} was edited since the checkpoint {checkpoint.name} was made: {'; '.join(changed)}. "
            "Undo the edit to continue the run, or train anew with other options"
        )


def differences(now: Any, before: Any, path: str = "") -> Iterator[str]:
    """Every value that differs between two configurations, with its path."""
    if isinstance(now, dict) and isinstance(before, dict):
        for name in sorted(now.keys() | before.keys()):
            yield from differences(now.get(name), before.get(name), f"{path}.{name}" if path else name)
    elif now != before:
        yield f"{path} was {before!r} and is {now!r}"


ALWAYS = ("task", "task_options", "method", "preset", "seed", "options")
"""Entries that every version has written."""


def from_json(data: Any, trust: Trust = False, source: object = "the configuration") -> RunConfig:
    """The configuration from the data that `to_json` wrote. Raises a ValueError that names its source.

    That is also raised if it names code of the user's own which is not trusted. Nothing is imported here.
    """
    try:
        check_value("it", dict, data)
        if missing := [name for name in ALWAYS if name not in data]:
            raise ValueError(f"it has no {', '.join(missing)}")
        config = _build(RunConfig, {name: value for name, value in data.items() if name != "versions"})
    except ValueError as error:
        raise ValueError(f"{source} cannot be read: {brief(error)}") from None
    check_code(config.task, [config.method], trust, source)
    return config


def own_code(task: str, method_names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The tasks and methods that are the user's own code, to be imported: pairs of "task" or "method" and the name."""
    if registry.is_imported(task):
        yield "task", task
    yield from (("method", name) for name in method_names if methods.is_imported(name))


def check_code(task: str, method_names: Iterable[str], trust: Trust, source: object) -> None:
    """Raise an `UntrustedError` if a file names a task or methods whose code may not be imported."""
    for what, name in own_code(task, method_names):
        check_trusted(what, name, trust, source)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that determine results; in a git clone also the commit of alma."""
    packages = ("alma-marl", "jax", "jaxlib", "flax", "optax", "numpy")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}, **_commit()}


@functools.cache
def _commit() -> dict[str, str]:
    clone = Path(__file__).parents[2]
    if not (clone / ".git").exists():
        return {}
    command = ["git", "-C", str(clone), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": found.stdout.strip()}


def _build(kind: Any, data: Any, path: str = "") -> Any:
    """Build nested dataclasses from nested dictionaries. Entries that an older version did not have may be missing."""
    if not dataclasses.is_dataclass(kind):
        check_value(path, typing.get_origin(kind) if typing.get_origin(kind) is dict else kind, data)
        return data
    check_value(path, dict, data)
    hints = typing.get_type_hints(kind)
    if unknown := sorted(set(data) - set(hints)):
        raise ValueError(f"there is no {path and path + '.'}{shortened(unknown[0])}: did another version write it?")
    nested = {name: _build(hints[name], value, f"{path}.{name}" if path else name) for name, value in data.items()}
    return typing.cast(Any, kind)(**nested)
