"""The figures as data: the runs to train for each, and the episodes to play with them."""

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

SETTINGS = (SAVE_THE_CITY, SZ_SYMMETRIC, SZ_DISADVANTAGE, MMM_SYMMETRIC, MMM_DISADVANTAGE)
"""The settings of the paper's figures."""


@dataclass(frozen=True)
class Arm:
    """One line of a figure: a method on a setting, trained with several seeds."""

    setting: Setting
    method: str
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Options that differ from the preset, by their path: `allocator.period`."""
    seeds: int | None = None
    """Maximum number of seeds."""
    preset: str | None = None
    """The preset that replaces `fast` for this arm."""

    def preset_for(self, preset_name: str) -> str:
        """The preset of this arm's runs if the figure is made with the given preset."""
        return self.preset if self.preset and preset_name == "fast" else preset_name

    def config(self, preset_name: str, seed: int, steps: int | None = None) -> RunConfig:
        """The configuration of the run with a seed; `steps` overrides the preset's."""
        preset_name = self.preset_for(preset_name)
        options = with_overrides(preset(preset_name, self.setting.task), self.changes)
        if steps is not None:
            options = replace(options, steps=steps)
        return RunConfig(self.setting.task, dict(self.setting.options), self.method, preset_name, seed, options)

    def run_name(self, preset_name: str, seed: int) -> str:
        """The name of the run's folder, which figures with the same run share."""
        changes = [f"{path}={text_of(value)}" for path, value in self.changes.items()]
        preset_name = self.preset_for(preset_name)
        return "_".join([self.setting.name, self.method.replace(":", "-"), *changes, preset_name, str(seed)])


def text_of(value: Any) -> str:
    """A value as part of a file name; a group of options is represented by the name of its type."""
    if isinstance(value, tuple):
        return ",".join(map(text_of, value))
    return type(value).__name__ if is_dataclass(value) else str(value)


@dataclass(frozen=True)
class Case:
    """A test case: episodes to play with the policies of an arm. It gives one point of the figure per seed."""

    panel: str
    """The panel of the figure."""
    label: str
    arm: Arm
    """The arm whose runs play."""
    at: float | None = None
    """The value on the axis of a sweep."""
    task_options: Mapping[str, Any] = field(default_factory=dict)
    """Task options that differ from training."""
    allocator: Arm | str | None = None
    """The allocator to use instead of the run's own: that of another arm's run with the same seed, or a rule."""
    other_seed: bool = False
    """Whether the allocator comes from the run with the next seed (cyclically)."""


Kind = Literal["curves", "sweep", "bars"]


@dataclass(frozen=True)
class Figure:
    """A figure: its cases, which determine the runs to train, and how they are shown."""

    name: str
    title: str
    kind: Kind
    cases: tuple[Case, ...]
    seeds: int
    """Default number of seeds."""
    axis: str = ""
    """Label of the axis of a sweep; by default the title of the panel."""
    logarithmic: bool = False
    """Whether the axis of a sweep is logarithmic."""
    over: Literal["steps", "minutes"] = "steps"
    """The x axis of learning curves. `steps`: all methods are trained for the same steps; `minutes`: for their own."""
    reference: str = "ALMA"
    """The label that others are compared with."""
    presets: tuple[str, ...] = tuple(PRESETS)
    """The presets that the figure can be made with."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """All arms that have to be trained, each once."""
        allocators = [case.allocator for case in self.cases if isinstance(case.allocator, Arm)]
        needed = {arm.run_name("fast", 0): arm for arm in [case.arm for case in self.cases] + allocators}
        return tuple(needed.values())

    def misfit(self, preset_name: str, steps: int | None) -> str:
        """Why the figure cannot be made with a preset, or with a common number of steps; empty if it can."""
        if preset_name not in self.presets:
            return f"{self.name} makes no sense with preset {preset_name}: choose {' or '.join(self.presets)}"
        if steps is not None and self.over == "minutes":
            return f"{self.name} gives methods steps of their own: leave out --steps"
        return ""

    def only(self, methods: tuple[str, ...], settings: tuple[str, ...]) -> "Figure":
        """The part of the figure with these methods and settings; an empty tuple stands for all of them."""

        def wanted(arm: Arm | str | None) -> bool:
            if not isinstance(arm, Arm):
                return True
            return (not methods or arm.method in methods) and (not settings or arm.setting.name in settings)

        return replace(self, cases=tuple(case for case in self.cases if wanted(case.arm) and wanted(case.allocator)))


def cases_of(arms: tuple[Arm, ...]) -> tuple[Case, ...]:
    """Cases that play the runs as they were trained, with a panel for each setting."""
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
    """An arm for each method on a setting."""
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
    """The arms with other numbers of steps for some methods."""
    return tuple(
        replace(arm, changes={**arm.changes, "steps": steps[arm.method]}) if arm.method in steps else arm
        for arm in arms
    )


# Methods that need less time per step get more steps, so that on the same machine no method is trained for fewer
# minutes than ALMA. The numbers are for preset `fast`.
_over_minutes = partial(Figure, over="minutes", presets=("fast",))
_CITY_MINUTES = with_steps(arms_of(SAVE_THE_CITY, *_CITY_METHODS), {"heuristic": 8_000_000, "flat": 6_000_000})
_BATTLE_MINUTES = with_steps(
    arms_of(SZ_DISADVANTAGE, "alma", "heuristic:matching", "heuristic:dynamic", "flat", "copa"),
    dict.fromkeys(("heuristic:matching", "heuristic:dynamic", "flat"), 6_000_000),
)

SPREADS = (0.0, 0.25, 0.5, 0.75, 1.0)


def spreads_of(arms: tuple[Arm, ...], swept: str = "spread", **options: Any) -> tuple[Case, ...]:
    """Cases for a sweep of one spread option in evaluation, of runs that were trained with armies far apart.

    `options` are other task options, the same at all points.
    """
    return tuple(
        Case(arm.setting.title, arm.label, arm, spread, {**options, swept: spread})
        for arm in arms
        for spread in SPREADS
    )


_SPREAD = (*arms_of(SZ_DISADVANTAGE, "alma", "flat"), *arms_of(MMM_SYMMETRIC, "alma", "flat"))

SIZES = (2, 3, 4, 5, 8, 16, 24)
"""Team sizes of SaveTheCity; runs are trained with teams of 2 to 5."""


def sizes_of(arms: tuple[Arm, ...]) -> tuple[Case, ...]:
    """Cases for a sweep of team sizes in evaluation."""
    return tuple(Case(arm.setting.title, arm.label, arm, size, {"agents": size}) for arm in arms for size in SIZES)


PERIODS = (1, 3, 6, 12)
ENTROPIES = (0.001, 0.01, 0.1, 1.0)


def sweep_of(panel: str, path: str, values: tuple[float, ...]) -> tuple[Case, ...]:
    """Cases for a sweep of one option of ALMA, and baselines to compare with. With the preset's own value, the runs are
    the same as those of other figures."""
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
    """ALMA and heuristics as they were trained, and the allocator of each combined with the actors of the other.

    A control combines allocator and actors of two ALMA seeds, which shows the cost of not having been trained together.
    """
    ours, *others = arms_of(setting, "alma", *heuristics)
    return (
        *(Case(setting.title, f"{arm.label}, trained together", arm) for arm in (ours, *others)),
        *(Case(setting.title, f"ALMA's allocator on actors of {arm.label}", arm, allocator=ours) for arm in others),
        Case(setting.title, "ALMA's allocator on actors of another ALMA seed", ours, allocator=ours, other_seed=True),
        *(Case(setting.title, f"{arm.label} on actors of ALMA", ours, allocator=arm.method) for arm in others),
    )


def faithful(setting: Setting, *methods: str, seeds: int) -> tuple[Arm, ...]:
    """Arms with the paper's networks, mixer and losses (preset `faithful`)."""
    return arms_of(setting, *methods, seeds=seeds, preset="faithful")


_ATTENTION = {"actors.networks.trunk": "attention"}
_ARCHITECTURE = {
    "SaveTheCity, preset faithful": (
        *faithful(SAVE_THE_CITY, "alma", seeds=3),
        *faithful(SAVE_THE_CITY, "heuristic", "flat", "alma-no-mask", "copa", seeds=2),
    ),
    # Does pooling favour methods that see one building only? The others with attention, otherwise as in `fast`.
    "SaveTheCity, preset fast with attention": (
        *arms_of(SAVE_THE_CITY, "alma", seeds=2),
        *arms_of(SAVE_THE_CITY, "flat", "alma-no-mask", "copa", seeds=2, changes=_ATTENTION),
        Arm(SAVE_THE_CITY, "flat", "flat, QMIX", {**_ATTENTION, "actors.networks.mixer": "qmix"}, seeds=2),
    ),
    "S&Z disadvantage, preset faithful": faithful(SZ_DISADVANTAGE, "alma", "flat", seeds=2),
}
"""The arms of each panel."""


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
"""Design choices of `fast`, each replaced by the paper's or by a step towards it; and another scale of rewards. The
paper's schedules of exploration are meant for 15 million steps."""
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
            "sizes",
            "Teams of other sizes than in training",
            "sweep",
            sizes_of(arms_of(SAVE_THE_CITY, *_CITY_METHODS)),
            seeds=3,
            axis="agents (trained with 2 to 5)",
            logarithmic=True,
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
    """One figure by name, or `all`; restricted to these methods and settings, if any are given."""
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
