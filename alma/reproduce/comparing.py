"""Comparing any runs, with the statistics, tables and plots of the paper's figures.

Runs that differ in nothing but the seed are one line of the comparison. Each task with its options is a panel.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from alma.files import read_json
from alma.reproduce.figures import LABELS, SETTINGS, Arm, Case, Figure, Setting, text_of
from alma.reproduce.plots import check_plots
from alma.reproduce.rows import Row, rows_of
from alma.reproduce.scores import EPISODES, CurvePoint, Score, curve_of_run, played
from alma.reproduce.writing import different, table, write_files
from alma.runs.config import RunConfig
from alma.runs.folder import RunFolder
from alma.runs.metrics import read_metrics
from alma.task.importing import Trust
from alma.training.presets import preset


@dataclass(frozen=True)
class Comparison:
    """Runs side by side: their final scores and their learning curves."""

    figure: Figure
    folders: tuple[RunFolder, ...]
    scores: list[Score]
    curves: list[CurvePoint]

    @cached_property
    def rows(self) -> list[Row]:
        """Final performance of each group of runs, with intervals over seeds and episodes."""
        return rows_of(self.scores, self.figure.reference)

    @property
    def table(self) -> str:
        """The rows as Markdown."""
        return table(self.figure, self.rows, f"{self._origin}.")

    @property
    def _origin(self) -> str:
        return f"`alma compare`: {len(self.scores)} runs"

    def write(self, out: str | Path, plots: bool = True) -> list[Path]:
        """Write table, data (JSON, CSV, marl-eval) and learning curves (PNG, SVG) into a folder; returns the files."""
        if plots:
            check_plots()
        out = Path(out)
        check_out(out)
        return write_files(
            self.figure,
            self.scores,
            self.curves,
            self.rows,
            out,
            summary=self.summary,
            origin=self._origin,
            plots=plots,
        )

    @property
    def summary(self) -> dict[str, Any]:
        """The comparison as JSON data, with the versions that the runs were trained with."""
        minutes = sum(score.run["training_minutes"] for score in self.scores)
        return {
            "runs": [str(folder.path) for folder in self.folders],
            "episodes": EPISODES,
            "compared_with": self.figure.reference,
            "training_hours": round(minutes / 60, 3),
            "versions": different([read_json(folder.config).get("versions", {}) for folder in self.folders]),
            "rows": [row.record for row in self.rows],
        }


def compare(
    runs: Iterable[str | Path],
    *,
    reference: str | None = None,
    over: Literal["steps", "minutes"] = "steps",
    trust: Trust = False,
) -> Comparison:
    """Compare runs: learning curves, and final success rates with 95 % intervals over seeds and episodes.

    `runs` are run folders, or folders that hold some; `NAME=FOLDER` names the runs of a folder. Runs that differ in
    nothing but the seed belong together. Each run plays 512 greedy episodes, the same ones for all runs of a task, and
    keeps the result. `reference` is the label that others are compared with, by default the first. Learning curves go
    over environment steps or over minutes of training. `trust` is that of `alma.load`, for runs that have to be played.
    """
    named = [found for run in runs for found in _find_runs(str(run))]
    if not named:
        raise ValueError("name at least one run to compare")
    names, folders = zip(*named, strict=True)
    configs = [folder.read_config(trust=True) for folder in folders]  # looked at only; `played` imports what it must
    cases = [
        case_of(config, name or label) for config, name, label in zip(configs, names, labels_of(configs), strict=True)
    ]
    _check_seeds(cases, configs, folders)
    figure = _figure(cases, reference, over)
    scores, curves = [], []
    for case, config, folder in zip(cases, configs, folders, strict=True):
        summary = played(case, [folder], trust)
        if not summary:
            raise ValueError(f"{folder.path} has no weights to play yet: leave it out, or train it first")
        scores.append(Score(case, config.seed, progress_of(folder), summary))
        curves += curve_of_run(case, config.seed, folder)
    return Comparison(figure, folders, scores, curves)


def check_out(out: Path) -> None:
    """Raise a ValueError if a comparison cannot be written there."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: choose a folder with --out")
    if RunFolder(out).is_run():
        raise ValueError(f"{out} is a run: choose another folder with --out")


def _find_runs(text: str) -> list[tuple[str, RunFolder]]:
    """The name (empty if there is none) and folder of each run that is meant."""
    name, path = "", Path(text)
    if not path.exists() and "=" in text:
        name, _, rest = text.partition("=")
        path = Path(rest)
    if RunFolder(path).is_run():
        return [(name, RunFolder(path))]
    inside = [RunFolder(child) for child in sorted(path.iterdir())] if path.is_dir() else []
    if found := [(name, folder) for folder in inside if folder.is_run()]:
        return found
    raise ValueError(f"{path} is no run folder, and holds none: name folders that `alma train` wrote")


def progress_of(folder: RunFolder) -> dict[str, Any]:
    """Steps and minutes of training of a run so far: from its result, or else its last line of metrics."""
    if folder.result.exists():
        return folder.read_result()
    lines = read_metrics(folder.metrics)
    return {"step": lines[-1]["step"], "training_minutes": lines[-1]["minutes"]} if lines else _NO_PROGRESS


_NO_PROGRESS = {"step": 0, "training_minutes": 0.0}

MAX_NAMED_OPTIONS = 4
"""So many options are named in a label; if more differ, it says how many."""


def labels_of(configs: list[RunConfig]) -> list[str]:
    """A label for each run: its method, and what else differs between the runs of its task, other than the seed.

    If many options differ, as after a search of hyperparameters, the label only counts them.
    """
    panels = [setting_of(config).title for config in configs]
    changes = [_changes(config) for config in configs]
    labels: list[str] = []
    counted: dict[tuple[str, str], list[list[str]]] = {}  # by panel and label, what the label leaves out
    for config, panel, mine in zip(configs, panels, changes, strict=True):
        rivals = [i for i, other in enumerate(panels) if other == panel]
        differs = any(configs[i].preset != config.preset for i in rivals)
        options = [
            f"{path}={text_of(value)}"
            for path, value in mine.items()
            if any(changes[i].get(path, ...) != value for i in rivals)
        ]
        method = LABELS.get(config.method, config.method)
        start = [method, *([config.preset] if differs else [])]
        if len(options) <= MAX_NAMED_OPTIONS:
            labels.append(", ".join([*start, *options]))
            continue
        label = ", ".join([*start, f"{len(options)} options differ"])
        alike = counted.setdefault((panel, label), [])
        if options not in alike:
            alike.append(options)
        place = alike.index(options)
        labels.append(f"{label} ({place + 1})" if place else label)
    return labels


def _changes(config: RunConfig) -> dict[str, Any]:
    """The options of a run that differ from its preset, by their path; what is only reported does not count."""
    usual, chosen = (_flat(asdict(options)) for options in (preset(config.preset, config.task), config.options))
    return {path: value for path, value in chosen.items() if usual[path] != value and not path.startswith("report.")}


def _flat(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested options, each by its path: `allocator.period`."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        found |= _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
    return found


def setting_of(config: RunConfig) -> Setting:
    """The task with its options: one of those of the paper's figures, or a new one."""
    options = json.loads(json.dumps(config.task_options))
    for setting in SETTINGS:
        if (setting.task, dict(setting.options)) == (config.task, options):
            return setting
    changes = [f"{name}={value}" for name, value in sorted(options.items())]
    return Setting("_".join([config.task, *changes]), ", ".join([config.task, *changes]), config.task, options)


def case_of(config: RunConfig, label: str) -> Case:
    """The point of the comparison that a run belongs to."""
    setting = setting_of(config)
    return Case(setting.title, label, Arm(setting, config.method, label, preset=config.preset))


def _check_seeds(cases: list[Case], configs: list[RunConfig], folders: tuple[RunFolder, ...]) -> None:
    """Raise a ValueError if two runs of one line have the same seed: they are no two samples."""
    keys = [(case.panel, case.label, config.seed) for case, config in zip(cases, configs, strict=True)]
    for key, count in Counter(keys).items():
        if count > 1:
            same = [str(folder.path) for folder, other in zip(folders, keys, strict=True) if other == key]
            raise ValueError(
                f"{' and '.join(same)} have the same options and seed {key[2]}: leave one out, or name them, "
                f"as in first={same[0]}"
            )


def _figure(cases: list[Case], reference: str | None, over: Literal["steps", "minutes"]) -> Figure:
    labels = list(dict.fromkeys(case.label for case in cases))
    if reference is not None and reference not in labels:
        raise ValueError(f"no run is called {reference!r}: choose a reference from {', '.join(labels)}")
    panels = {case.panel for case in cases}
    title = panels.pop() if len(panels) == 1 else "Comparison"
    each_once = tuple(case for i, case in enumerate(cases) if case not in cases[:i])
    return Figure("comparison", title, "curves", each_once, seeds=1, over=over, reference=reference or labels[0])
