"""The figures as data: what is trained for each, and what is then played."""

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from typing import Any, Literal

from alma.runs.config import RunConfig
from alma.training.options import with_overrides
from alma.training.presets import PAPER, PRESETS, preset


@dataclass(frozen=True)
class Setting:
    """A task with its options."""

    name: str
    title: str
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)


SAVE_THE_CITY = Setting("save-the-city", "SaveTheCity", "save-the-city")
SZ_SYMMETRIC = Setting("sz-symmetric", "S&Z symmetric", "starcraft", {"balance": "symmetric"})
SZ_DISADVANTAGE = Setting("sz-disadvantage", "S&Z disadvantage", "starcraft", {"balance": "disadvantage"})
MMM_SYMMETRIC = Setting("mmm-symmetric", "MMM symmetric", "starcraft", {"units": "mmm", "balance": "symmetric"})
MMM_DISADVANTAGE = Setting(
    "mmm-disadvantage", "MMM disadvantage", "starcraft", {"units": "mmm", "balance": "disadvantage"}
)


@dataclass(frozen=True)
class Arm:
    """One line of a figure: a method on a setting, trained with several seeds."""

    setting: Setting
    method: str
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Options that differ from the preset, by their path: `allocator.period`."""
    seeds: int | None = None
    """At most so many of the seeds."""
    preset: str | None = None
    """The preset it takes where others of the figure take `fast`."""

    def preset_for(self, preset_name: str) -> str:
        """The preset of its runs, where the figure is asked for with a preset."""
        return self.preset if self.preset and preset_name == "fast" else preset_name

    def config(self, preset_name: str, seed: int, steps: int | None = None) -> RunConfig:
        """The run with a seed; `steps` instead of the preset's."""
        preset_name = self.preset_for(preset_name)
        options = with_overrides(preset(preset_name, self.setting.task), self.changes)
        if steps is not None:
            options = replace(options, steps=steps)
        return RunConfig(self.setting.task, dict(self.setting.options), self.method, preset_name, seed, options)

    def run_name(self, preset_name: str, seed: int) -> str:
        """Of the run's folder; figures that need the same run find it there."""
        changes = [f"{path}={plain(value)}" for path, value in self.changes.items()]
        preset_name = self.preset_for(preset_name)
        return "_".join([self.setting.name, self.method.replace(":", "-"), *changes, preset_name, str(seed)])


def plain(value: Any) -> str:
    """A value as part of a file's name; of a whole group of options, its type will do."""
    if isinstance(value, tuple):
        return ",".join(map(plain, value))
    return type(value).__name__ if is_dataclass(value) else str(value)


@dataclass(frozen=True)
class Case:
    """Episodes to be played with what one run has learned, or two: the points of a figure."""

    panel: str
    """The part of the figure it belongs to."""
    label: str
    arm: Arm
    """Whose run it is; one point for each of its seeds."""
    at: float | None = None
    """Where it stands on the axis of a sweep."""
    task_options: Mapping[str, Any] = field(default_factory=dict)
    """What is different from training."""
    allocator: Arm | str | None = None
    """Who allocates instead: the run of an arm with the same seed, or a rule."""
    other_seed: bool = False
    """Whether the allocator comes from the run with the next seed; the last seed is followed by the first."""


Kind = Literal["curves", "sweep", "bars"]


@dataclass(frozen=True)
class Figure:
    """What to case, and so what to train, and how to show it."""

    name: str
    title: str
    kind: Kind
    cases: tuple[Case, ...]
    seeds: int
    """How many, if not told."""
    axis: str = ""
    """What a sweep goes over; its panels say so if not given."""
    logarithmic: bool = False
    over: Literal["steps", "minutes"] = "steps"
    """What training is measured by, and learning curves go over: methods have the same steps, or steps of their own."""
    reference: str = "ALMA"
    """The label that others are compared with."""
    presets: tuple[str, ...] = tuple(PRESETS)
    """With which it makes sense."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Everything that has to be trained, each once."""
        allocators = [case.allocator for case in self.cases if isinstance(case.allocator, Arm)]
        needed = {arm.run_name("fast", 0): arm for arm in [case.arm for case in self.cases] + allocators}
        return tuple(needed.values())

    def misfit(self, preset_name: str, steps: int | None) -> str:
        """Why it makes no sense with a preset, or with a number of steps for all runs; nothing where it does."""
        if preset_name not in self.presets:
            return f"{self.name} makes no sense with preset {preset_name}: choose {' or '.join(self.presets)}"
        if steps is not None and self.over == "minutes":
            return f"{self.name} gives methods steps of their own: leave out --steps"
        return ""

    def only(self, methods: tuple[str, ...], settings: tuple[str, ...]) -> "Figure":
        """The part with these methods and settings; everything where none are named."""

        def wanted(arm: Arm | str | None) -> bool:
            if not isinstance(arm, Arm):
                return True
            return (not methods or arm.method in methods) and (not settings or arm.setting.name in settings)

        return replace(self, cases=tuple(case for case in self.cases if wanted(case.arm) and wanted(case.allocator)))


def cases_of(arms: tuple[Arm, ...]) -> tuple[Case, ...]:
    """Every run as it is, a panel for each setting."""
    return tuple(Case(arm.setting.title, arm.label, arm) for arm in arms)


LABELS = {
    "alma": "ALMA",
    "alma-no-mask": "ALMA, no mask",
    "heuristic": "heuristic",
    "heuristic:matching": "matching",
    "heuristic:dynamic": "dynamic",
    "random": "random allocation",
    "flat": "flat",
    "copa": "COPA",
}


def arms_of(setting: Setting, *methods: str, **options: Any) -> tuple[Arm, ...]:
    return tuple(Arm(setting, method, LABELS[method], **options) for method in methods)


# ---- the figures

_CITY_METHODS = ("alma", "heuristic", "alma-no-mask", "flat", "copa")
_CITY = (*arms_of(SAVE_THE_CITY, *_CITY_METHODS), *arms_of(SAVE_THE_CITY, "random", seeds=2))
_BATTLE_METHODS = ("alma", "heuristic:matching", "heuristic:dynamic", "alma-no-mask", "flat", "copa")
_BATTLES = tuple(
    arm
    for setting in (SZ_DISADVANTAGE, SZ_SYMMETRIC, MMM_DISADVANTAGE, MMM_SYMMETRIC)
    for arm in arms_of(setting, *_BATTLE_METHODS)
)
_ALMA, _MATCHING, _DYNAMIC, _FLAT = arms_of(SZ_DISADVANTAGE, "alma", "heuristic:matching", "heuristic:dynamic", "flat")


def with_steps(arms: tuple[Arm, ...], steps: Mapping[str, int]) -> tuple[Arm, ...]:
    """Some methods with a number of steps of their own."""
    return tuple(
        replace(arm, changes={**arm.changes, "steps": steps[arm.method]}) if arm.method in steps else arm
        for arm in arms
    )


# What learns with less work for a step has more steps here, so that on the same machine no method is trained for fewer
# minutes than ALMA. The numbers are for preset `fast`.
_over_minutes = partial(Figure, over="minutes", presets=("fast",))
_CITY_MINUTES = with_steps(arms_of(SAVE_THE_CITY, *_CITY_METHODS), {"heuristic": 8_000_000, "flat": 6_000_000})
_BATTLE_MINUTES = with_steps(
    arms_of(SZ_DISADVANTAGE, "alma", "heuristic:matching", "heuristic:dynamic", "flat", "copa"),
    dict.fromkeys(("heuristic:matching", "heuristic:dynamic", "flat"), 6_000_000),
)

SPREADS = (0.0, 0.25, 0.5, 0.75, 1.0)


def spreads_of(arms: tuple[Arm, ...], swept: str = "spread", **options: Any) -> tuple[Case, ...]:
    """Runs that were trained with armies far apart, and play where they are nearer to each other: one option of the
    task is swept, `options` are the same at all points."""
    return tuple(
        Case(arm.setting.title, arm.label, arm, spread, {**options, swept: spread})
        for arm in arms
        for spread in SPREADS
    )


_SPREAD = (*arms_of(SZ_DISADVANTAGE, "alma", "flat"), *arms_of(MMM_SYMMETRIC, "alma", "flat"))

PERIODS = (1, 3, 6, 12)
ENTROPIES = (0.001, 0.01, 0.1, 1.0)


def sweep_of(panel: str, path: str, values: tuple[float, ...]) -> tuple[Case, ...]:
    """ALMA with other values of one option, and what it is to stay above. The preset's own value is the same run as in
    other figures."""
    usual = preset("fast", SZ_DISADVANTAGE.task)
    sweep = (
        Case(
            panel,
            "ALMA",
            _ALMA if with_overrides(usual, {path: value}) == usual else replace(_ALMA, changes={path: value}),
            value,
        )
        for value in values
    )
    return (*sweep, *(Case(panel, arm.label, arm) for arm in (_MATCHING, _DYNAMIC, _FLAT)))


def transplants(setting: Setting, *heuristics: str) -> tuple[Case, ...]:
    """ALMA and heuristics as they were trained, and the allocator of each on the actors of the other.

    A control tells what it costs alone that allocator and actors were not trained together: both are ALMA's.
    """
    ours, *others = arms_of(setting, "alma", *heuristics)
    return (
        *(Case(setting.title, f"{arm.label}, trained together", arm) for arm in (ours, *others)),
        *(Case(setting.title, f"ALMA's allocator on actors of {arm.label}", arm, allocator=ours) for arm in others),
        Case(setting.title, "ALMA's allocator on actors of another ALMA seed", ours, allocator=ours, other_seed=True),
        *(Case(setting.title, f"{arm.label} on actors of ALMA", ours, allocator=arm.method) for arm in others),
    )


def faithful(setting: Setting, *methods: str, seeds: int) -> tuple[Arm, ...]:
    """Runs with the paper's networks, mixer and losses."""
    return arms_of(setting, *methods, seeds=seeds, preset="faithful")


_ATTENTION = {"actors.networks.trunk": "attention"}
_ARCHITECTURE = {
    "SaveTheCity, preset faithful": (
        *faithful(SAVE_THE_CITY, "alma", seeds=3),
        *faithful(SAVE_THE_CITY, "heuristic", "flat", "alma-no-mask", "copa", seeds=2),
    ),
    # Whether pooling favours who sees one building only: the others with attention, and everything else as in `fast`.
    "SaveTheCity, preset fast with attention": (
        *arms_of(SAVE_THE_CITY, "alma", seeds=2),
        *arms_of(SAVE_THE_CITY, "flat", "alma-no-mask", "copa", seeds=2, changes=_ATTENTION),
        Arm(SAVE_THE_CITY, "flat", "flat, QMIX", {**_ATTENTION, "actors.networks.mixer": "qmix"}, seeds=2),
    ),
    "S&Z disadvantage, preset faithful": faithful(SZ_DISADVANTAGE, "alma", "flat", seeds=2),
}
"""The runs of each panel."""


DEPARTURES: Mapping[str, Mapping[str, Any]] = {
    "fast": {},
    "attention instead of pooling": {"actors.networks.trunk": "attention"},
    "attention, and places instead of relations": {
        "actors.networks.trunk": "attention",
        "actors.networks.places": True,
        "actors.networks.relations": False,
    },
    "no layer normalisation in actors": {"actors.networks.normalise": False},
    "QMIX instead of sums": {"actors.networks.mixer": "qmix"},
    "places besides relations": {"actors.networks.places": True, "allocator.networks.places": True},
    "pointer network and attention critic": {"allocator.networks": PAPER.allocator.networks},
    "no variations of proposals": {"allocator.variations": 0},
    "gamma 0.99 for actors": {"actors.gamma": 0.99},
    "gamma 0.99 for the allocator": {"allocator.gamma": 0.99},
    "one-step returns": {"actors.n_step": 1},
    "windows of 64 steps": {"actors.window": 64, "actors.batch": 8},
    "RMSProp, learning rate 5e-4": {
        f"{level}.{name}": value
        for level in ("actors", "allocator")
        for name, value in (("optimiser", "rmsprop"), ("learning_rate", 5e-4))
    },
    "constant learning rate": {"actors.final_rate": 1.0, "allocator.final_rate": 1.0},
    "Pop-Art": {"actors.popart": True, "allocator.popart": True},
    "rewards times 0.2": {"actors.reward_scale": 0.2, "allocator.reward_scale": 0.2},
    "live networks play": {"play": "live"},
    "random actions for one step only": {"exploration.persistence": 0.0},
    "the paper's schedules of exploration": {
        f"exploration.{name}": getattr(PAPER.exploration, name) for name in ("action", "proposal", "subtask")
    },
    "target networks that are copied, and play": {
        f"{level}.{name}": getattr(getattr(PAPER, level), name)
        for level in ("actors", "allocator")
        for name in ("target_rate", "target_episodes")
    },
    "networks of width 128": {"actors.networks.width": 128, "allocator.networks.width": 128},
    "the paper's batches": {"actors.window": 64, "actors.batch": 32, "allocator.batch": 400},
    "32 proposals, entropy along all": {"allocator.proposals": 32, "allocator.entropy_proposals": 32},
    "the paper's collection: 8 environments, an update an episode": {"collection": PAPER.collection},
}
"""Choices of `fast` undone one by one: how the paper has it, or a step in that direction, and rewards on another scale.
Its schedules of exploration are made for 15 million steps."""
_ABLATIONS = (
    *(Arm(SAVE_THE_CITY, "alma", label, changes) for label, changes in DEPARTURES.items()),
    *arms_of(SAVE_THE_CITY, "alma-no-mask"),
)

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("save-the-city", "SaveTheCity", "curves", cases_of(_CITY), seeds=5),
        Figure("starcraft", "StarCraft base defence", "curves", cases_of(_BATTLES), seeds=2),
        _over_minutes(
            "save-the-city-minutes",
            "SaveTheCity, with at least ALMA's minutes",
            "curves",
            cases_of(_CITY_MINUTES),
            seeds=5,
        ),
        _over_minutes(
            "starcraft-minutes",
            "StarCraft base defence, with at least ALMA's minutes",
            "curves",
            cases_of(_BATTLE_MINUTES),
            seeds=2,
        ),
        Figure(
            "spread",
            "Armies nearer to each other than in training",
            "sweep",
            spreads_of(_SPREAD),
            seeds=2,
            axis="spread of armies (1: as in training)",
        ),
        Figure(
            "spread-each",
            "Armies at distances of their own",
            "sweep",
            spreads_of(_SPREAD, "one_spread", spread=(0.0, 1.0)),
            seeds=2,
            axis="spread of one army (the others' drawn from 0 to 1)",
        ),
        _over_minutes(
            "spread-minutes",
            "Nearer armies, and flat for longer",
            "sweep",
            spreads_of(tuple(arm for arm in _BATTLE_MINUTES if arm.method in ("alma", "flat"))),
            seeds=2,
            axis="spread of armies (1: as in training)",
        ),
        Figure(
            "transplant",
            "Allocators on actors that were trained without them",
            "bars",
            transplants(SZ_DISADVANTAGE, "heuristic:matching", "heuristic:dynamic"),
            seeds=2,
            reference="ALMA, trained together",
        ),
        Figure(
            "transplant-save-the-city",
            "Allocators on actors that were trained without them",
            "bars",
            transplants(SAVE_THE_CITY, "heuristic"),
            seeds=5,
            reference="ALMA, trained together",
        ),
        Figure(
            "robustness",
            "Other values of N_t and lambda_AQL",
            "sweep",
            sweep_of("N_t", "allocator.period", PERIODS) + sweep_of("lambda_AQL", "allocator.entropy", ENTROPIES),
            seeds=2,
            logarithmic=True,
        ),
        Figure(
            "architecture",
            "The paper's own networks",
            "curves",
            tuple(Case(panel, arm.label, arm) for panel, arms in _ARCHITECTURE.items() for arm in arms),
            seeds=3,
            presets=("fast", "tiny"),
        ),
        Figure(
            "ablations",
            "What choices of preset fast buy",
            "bars",
            cases_of(_ABLATIONS),
            seeds=2,
            reference="fast",
            presets=("fast", "tiny"),
        ),
    )
}


def find_figures(name: str, methods: tuple[str, ...] = (), settings: tuple[str, ...] = ()) -> list[Figure]:
    """One figure by name, or `all` of them; only the parts with these methods and settings, where any are named."""
    if name != "all" and name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}: choose from {', '.join(FIGURES)}, all")
    figures = list(FIGURES.values()) if name == "all" else [FIGURES[name]]
    arms = [arm for figure in figures for arm in figure.arms]
    for what, asked, known in (
        ("methods", methods, {arm.method for arm in arms}),
        ("settings", settings, {arm.setting.name for arm in arms}),
    ):
        if unknown := set(asked) - known:
            raise ValueError(
                f"there are no {what} {', '.join(sorted(unknown))} in {name}: choose from {', '.join(sorted(known))}"
            )
    parts = [part for figure in figures if (part := figure.only(methods, settings)).cases]
    if not parts:
        raise ValueError(f"nothing in {name} has both the methods {', '.join(methods)} and {', '.join(settings)}")
    return parts
