"""A sweep: every combination of options, methods, task settings and seeds, each a run in a folder of its own."""

import itertools
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alma.files import brief, read_data
from alma.launch.job import Job
from alma.reproduce.figures import FIGURES, Arm, Setting
from alma.runs.config import RunConfig, check_code
from alma.runs.folder import RunFolder
from alma.training.options import with_overrides
from alma.training.preset_file import check_option, check_value, find_preset, flat, preset_stem, shortened

OF_TASK = "set."
"""Prefix of options of the task among training options: `set.agents`."""


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep: all combinations of options, methods and seeds."""

    task: str
    methods: tuple[str, ...] = ("alma",)
    seeds: tuple[int, ...] = (0,)
    preset: str = "fast"
    """Name of a preset, or a preset file."""
    steps: int | None = None
    """Environment steps of every run. None: those of the preset."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Options of the task that are the same for all runs."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Training options that are the same for all runs, by their path."""
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values to combine, by the path of the option: `actors.n_step`, or `set.agents` for an option of the task."""
    variants: tuple[Mapping[str, Any], ...] = ({},)
    """Combinations of options that are run as they are, each with the whole grid."""

    def __post_init__(self) -> None:
        for path, value in self.changes():
            if not path.startswith(OF_TASK):
                check_option(path, value)
        for name in ("methods", "seeds", "variants"):
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")
        for path, values in self.grid.items():
            if not values:
                raise ValueError(f"grid: {path} has no values")

    def changes(self) -> Iterator[tuple[str, Any]]:
        """Every option that is named anywhere, with every value."""
        yield from self.options.items()
        yield from ((path, value) for path, values in self.grid.items() for value in values)
        yield from (entry for variant in self.variants for entry in variant.items())

    def points(self) -> list[Mapping[str, Any]]:
        """The combinations of options, in the order of the grid."""
        axes = [[(path, value) for value in values] for path, values in self.grid.items()]
        return [{**variant, **dict(chosen)} for variant in self.variants for chosen in itertools.product(*axes)]

    def runs(self, out: Path) -> list["SweptRun"]:
        """All runs, in the order of seeds: so that early on, all of them have some results."""
        return [
            _run(self, method, point, seed, out)
            for seed in self.seeds
            for point in self.points()
            for method in self.methods
        ]


@dataclass(frozen=True)
class SweptRun:
    """One run of a sweep."""

    job: Job
    arm: Arm
    """The method and the setting of the task."""
    point: Mapping[str, Any]
    """The values of the options that are swept."""
    seed: int


def _run(sweep: Sweep, method: str, point: Mapping[str, Any], seed: int, out: Path) -> SweptRun:
    own = {path.removeprefix(OF_TASK): value for path, value in point.items() if path.startswith(OF_TASK)}
    changes = {path: value for path, value in point.items() if not path.startswith(OF_TASK)}
    arm = Arm(_setting(sweep.task, {**sweep.set, **own}), method, method, changes)
    base, options = find_preset(sweep.preset, sweep.task)
    steps = {} if sweep.steps is None else {"steps": sweep.steps}
    options = with_overrides(options, {**steps, **sweep.options, **changes})
    config = RunConfig(sweep.task, dict(arm.setting.options), method, base, seed, options)
    folder = RunFolder(out / "runs" / arm.run_name(preset_stem(sweep.preset), seed).replace("/", "-"))
    return SweptRun(Job(folder, config), arm, point, seed)


def _setting(task: str, options: Mapping[str, Any]) -> Setting:
    """A task with its options: one of those of the figures, which then find its runs, or one named by its options."""
    known = {arm.setting.name: arm.setting for figure in FIGURES.values() for arm in figure.arms}
    for setting in known.values():
        if (setting.task, dict(setting.options)) == (task, dict(options)):
            return setting
    parts = [task.replace(":", "-"), *(f"{name}={_written(value)}" for name, value in options.items())]
    return Setting("_".join(parts), ", ".join(parts), task, dict(options))


def _written(value: Any) -> str:
    return "..".join(map(str, value)) if isinstance(value, tuple) else str(value)


def read_sweep(path: Path, trust: bool = False) -> Sweep:
    """Read a sweep from a TOML or JSON file. Raises a ValueError that names the file if it is invalid.

    That is also raised if it names a task or method as `module:Name` and is not trusted.
    """
    data = read_data(path)
    known = set(typing.get_type_hints(Sweep))
    if unknown := sorted(set(data) - known):
        raise ValueError(f"{path}: there is no key {shortened(unknown[0])}: choose from {', '.join(sorted(known))}")
    if "task" not in data:
        raise ValueError(f"{path}: task: name a task")
    try:
        sweep = Sweep(**{name: _value(name, value) for name, value in data.items()})
    except ValueError as error:
        raise ValueError(f"{path}: {brief(error)}") from None
    check_code(sweep.task, sweep.methods, trust, path)
    return sweep


def _value(name: str, value: Any) -> Any:
    """An entry of a file as a field of a sweep."""
    if name in ("methods", "seeds"):
        for entry in _checked_list(name, value):
            check_value(name, str if name == "methods" else int, entry)
        return tuple(value)
    if name in ("set", "options"):
        return {path: _tuple(part) for path, part in flat(_checked_table(name, value))}
    if name == "grid":
        axes = flat(_checked_table(name, value))
        return {path: tuple(map(_tuple, _checked_list(path, values))) for path, values in axes}
    if name == "variants":
        return tuple(dict(flat(_checked_table(name, variant))) for variant in _checked_list(name, value))
    check_value(name, int if name == "steps" else str, value)
    return value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _checked_list(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, not {value!r}")
    return tuple(value)


def _checked_table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a table of options by their path, not {value!r}")
    return value
