"""Hyperparameters, and the sets of them that belong together."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from alma.learning.schedules import Linear

Ends: TypeAlias = Literal["subtask", "episode"]
"""Where the value of a subtask ends."""

NextAllocation: TypeAlias = Literal["kept", "renewed"]
"""Under which allocation agents look at the next state when they bootstrap from it."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _require_at_least(least: float, options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        _require(least <= value < math.inf, f"{name} must be at least {least}, not {value}")


def _require_positive(options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        _require(0 < value < math.inf, f"{name} must be positive, not {value}")


@dataclass(frozen=True)
class ActorNetworkOptions:
    """What the networks of the low level look like."""

    trunk: Literal["pooling", "attention"] = "pooling"
    """How actors look at entities."""
    relations: bool = True
    """Whether attention uses what entities are to an agent (offset, distance, ...)."""
    places: bool = False
    """Whether networks see where on the map entities are, besides where they are from an agent."""
    width: int = 64
    """Of what networks make of entities and of pairs of agent and entity."""
    heads: int = 4
    """Of attention."""
    hidden: int = 64
    """Width of the last hidden layer of the utilities."""
    normalise: bool = True
    """Whether pooling normalises its sums (layer normalisation)."""
    aim: int = 0
    """Width of a network by which the target of an action adds to its value, the same for all targets: for tasks in
    which actions differ by whom they are aimed at. 0: none."""
    mixer: Literal["sum", "qmix", "independent"] = "sum"
    """How utilities make the value of a subtask: added up (VDN), mixed by hypernetworks, or not at all: then every
    agent learns for itself."""
    mixer_width: int = 32
    """Of the mixer's hidden layer."""
    hyper_width: int = 128
    """Of the mixer's hypernetworks."""
    mixing: Literal["softmax", "absolute"] = "softmax"
    """How the mixer's weights are made positive."""
    offsets: Literal["signed", "absolute"] = "signed"
    """How the biases of QMIX are used: as they come, or their absolute values."""

    def __post_init__(self) -> None:
        _require(self.relations or self.places, "without relations, networks need places: set places too")
        _require_at_least(1, self, "width", "heads", "hidden", "mixer_width", "hyper_width")
        _require_at_least(0, self, "aim")
        for name in ("width", "hyper_width"):
            size = getattr(self, name)
            _require(
                size % self.heads == 0, f"{name} must be a multiple of the {self.heads} heads of attention, not {size}"
            )


@dataclass(frozen=True)
class AllocatorNetworkOptions:
    """What the networks of the high level look like."""

    kind: Literal["pairs", "pointer"] = "pairs"
    """Codes of (agent, subtask) pairs, or the paper's pointer network and attention critic."""
    width: int = 64
    """Of the codes of pairs, or of the pointer network and its critic."""
    heads: int = 4
    """Of attention."""
    choice_width: int = 32
    """Of the parts of the pair networks that are computed anew for every allocation."""
    relations: bool = True
    """Whether the pointer network and its critic see what entities are to an agent (offset, distance, ...); pair
    networks always do."""
    places: bool = False
    """Whether networks see where on the map entities are, besides where they are from an agent."""

    def __post_init__(self) -> None:
        _require_at_least(1, self, "width", "heads", "choice_width")
        _require(self.relations or self.places, "without relations, networks need places: set places too")
        _require(
            self.relations or self.kind == "pointer",
            "pair networks are made of relations: set relations, or choose the pointer network",
        )
        _require(
            self.width % self.heads == 0,
            f"width must be a multiple of the {self.heads} heads of attention, not {self.width}",
        )


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """What both levels have in common."""

    gamma: float
    """Discount of what comes later."""
    batch: int
    learning_rate: float = 1e-3
    """At the beginning."""
    final_rate: float = 0.1
    """The share of the learning rate that is left at the end of the run; it falls in a straight line."""
    optimiser: Literal["adam", "rmsprop"] = "adam"
    """The rule that turns gradients into steps."""
    clip: float = 10.0
    """The norm of gradients is cut to this."""
    target_rate: float = 0.02
    """How far the target network moves when it follows: 1 copies."""
    target_episodes: int = 0
    """Episodes between moves of the target network; 0: it moves after every update."""
    reward_scale: float = 1.0
    """Rewards are multiplied by this: what actions differ by should be no less than what networks begin with."""
    popart: bool = False
    """Normalise values by running statistics of the targets."""

    def __post_init__(self) -> None:
        _require(0 <= self.gamma <= 1, f"gamma must lie between 0 and 1, not {self.gamma}")
        _require_at_least(1, self, "batch")
        _require_at_least(0, self, "target_episodes")
        _require_positive(self, "learning_rate", "clip", "reward_scale")
        _require(0 <= self.final_rate <= 1, f"final_rate must lie between 0 and 1, not {self.final_rate}")
        _require(0 < self.target_rate <= 1, f"target_rate must lie in (0, 1], not {self.target_rate}")


@dataclass(frozen=True, kw_only=True)
class ActorOptions(LearningOptions):
    """The low level: Q-learning of the actors."""

    gamma: float = 0.98
    """Discount of an environment step."""
    batch: int = 512
    """Windows an update."""
    window: int = 1
    """Transitions that follow each other, in a window."""
    n_step: int = 5
    """Steps of reward before bootstrapping; cut where the allocation changes."""
    ends: Ends = "episode"
    """Where the value of a subtask ends: where that subtask is finished (subtask), or also where the episode terminates
    for another reason, as when another army breaks through (episode)."""
    next_allocation: NextAllocation = "kept"
    """The allocation under which agents look at the state they bootstrap from: the one they acted under (kept), or the
    one that follows it (renewed)."""
    imagination: float = 0.0
    """lambda of REFIL: the share of the loss from imagined groups; 0: attention QMIX alone."""
    advice: float = 5e-5
    """lambda_vi of COPA: weight of the terms that make a coach's advice tell in what agents do."""
    networks: ActorNetworkOptions = field(default_factory=ActorNetworkOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 <= self.imagination <= 1, f"imagination must lie between 0 and 1, not {self.imagination}")
        _require(
            not self.imagination or self.networks.mixer != "independent",
            "imagined groups need a mixer: choose sum or qmix instead of independent, or set imagination to 0 (aqmix)",
        )
        _require_at_least(0, self, "advice")
        _require_at_least(1, self, "window", "n_step")


@dataclass(frozen=True, kw_only=True)
class AllocatorOptions(LearningOptions):
    """The high level: amortised Q-learning of the allocator."""

    gamma: float = 0.95
    """Discount of a decision."""
    batch: int = 128
    """Decisions an update."""
    updates: int = 1
    """Updates for each one of the actors."""
    n_step: int = 1
    """Decisions whose rewards are added up before bootstrapping."""
    period: int = 5
    """N_t: steps between allocations."""
    play_period: int = 0
    """The same where what was learned is played, in evaluations and ever after; 0: as in training."""
    proposals: int = 16
    """N_p: allocations to choose from."""
    variations: int = 8
    """More allocations to choose from: proposals with one agent sent elsewhere at random."""
    play_candidates: int = 1
    """How many times as many of both there are where what was learned is played, in evaluations and ever after."""
    entropy: float = 0.01
    """lambda_AQL: weight of the proposal's entropy."""
    entropy_proposals: int = 0
    """Proposals along which that entropy is measured; 0: along the best allocation only, which is cheaper."""
    max_age: int = 150_000
    """Decisions older than so many environment steps are not used; until then they are drawn less and less often."""
    networks: AllocatorNetworkOptions = field(default_factory=AllocatorNetworkOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_at_least(1, self, "updates", "n_step", "period", "proposals", "play_candidates", "max_age")
        _require_at_least(0, self, "entropy")
        _require(
            0 <= self.entropy_proposals <= self.proposals,
            f"entropy_proposals must lie between 0 and the {self.proposals} proposals, not {self.entropy_proposals}",
        )
        _require(self.period <= 10_000, f"period must be at most 10000, not {self.period}")
        _require(
            self.play_period >= 0, f"play_period must be a number of steps, or 0 for the period, not {self.play_period}"
        )
        _require(
            0 <= self.variations <= self.proposals,
            f"variations must lie between 0 and the {self.proposals} proposals, not {self.variations}",
        )


@dataclass(frozen=True)
class CollectionOptions:
    """Playing, and what is remembered of it."""

    environments: int = 128
    """Environments that run side by side."""
    buffer: int = 524_288
    """Environment steps kept in replay."""
    decisions: int = 131_072
    """Decisions kept in replay."""
    warmup: int = 10_240
    """Environment steps before the first update."""
    steps_per_update: int = 256
    """Environment steps between updates."""
    episodes_per_update: int = 0
    """If not 0: an update is only made after so many finished episodes."""

    def __post_init__(self) -> None:
        _require_at_least(1, self, "environments")
        _require_at_least(0, self, "episodes_per_update")
        for name in ("buffer", "decisions", "warmup", "steps_per_update"):
            _require(
                getattr(self, name) >= self.environments,
                f"{name} must be at least the number of environments ({self.environments}), not {getattr(self, name)}",
            )
        _require(
            self.steps_per_update % self.environments == 0,
            f"steps_per_update must be a multiple of the {self.environments} environments, not {self.steps_per_update}",
        )


@dataclass(frozen=True)
class ExplorationOptions:
    """How often choices are made at random; each falls linearly with environment steps."""

    action: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 250_000))
    """eps: the share of random actions."""
    persistence: float = 0.8
    """The chance that an agent that acts at random repeats itself at the next step, if it can. Going somewhere, or
    putting out a fire together, takes several steps in a row."""
    proposal: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 400_000))
    """eps_p: the first proposal instead of the best."""
    subtask: Linear = field(default_factory=lambda: Linear(1.0, 0.0, 250_000))
    """eps_r: a random subtask, agent by agent."""

    def __post_init__(self) -> None:
        for name in ("action", "proposal", "subtask"):
            schedule = getattr(self, name)
            _require(
                0 <= schedule.start <= 1 and 0 <= schedule.end <= 1,
                f"{name} must start and end between 0 and 1, not at {schedule.start} and {schedule.end}",
            )
        _require(0 <= self.persistence < 1, f"persistence must lie in [0, 1), not {self.persistence}")


@dataclass(frozen=True)
class ReportOptions:
    """What is told of a run while it goes on. None of it changes what is learned."""

    chunk: int = 5_120
    """Environment steps between two looks at the run, in one compiled call."""
    log_every: int = 25_600
    """Environment steps between lines of metrics."""
    evaluate_every: int = 204_800
    """Environment steps between evaluations; there is always one at the end."""
    episodes: int = 256
    """Greedy episodes of an evaluation."""
    final_episodes: int = 1024
    """Greedy episodes of the last evaluation."""
    checkpoint_minutes: float = 5.0
    """Time between checkpoints."""

    def __post_init__(self) -> None:
        _require_at_least(1, self, "chunk", "log_every", "evaluate_every", "episodes", "final_episodes")
        _require_positive(self, "checkpoint_minutes")


@dataclass(frozen=True)
class TrainingOptions:
    """Everything that makes a training run, apart from the task and the method."""

    steps: int = 3_000_000
    """Environment steps to train for."""
    play: Literal["live", "target", "average"] = "target"
    """Which networks are evaluated and saved: the live ones; the target networks, which are averages of them over a few
    updates; or their average over the last tenth of the run so far, which is worth having in long runs."""
    actors: ActorOptions = field(default_factory=ActorOptions)
    allocator: AllocatorOptions = field(default_factory=AllocatorOptions)
    collection: CollectionOptions = field(default_factory=CollectionOptions)
    exploration: ExplorationOptions = field(default_factory=ExplorationOptions)
    report: ReportOptions = field(default_factory=ReportOptions)

    @property
    def updates_per_chunk(self) -> int:
        """Rounds of playing and learning in one compiled call."""
        return max(1, self.report.chunk // self.collection.steps_per_update)

    def __post_init__(self) -> None:
        most = 2_000_000_000  # what runs count with has 31 bits
        _require(1 <= self.steps <= most, f"steps must lie between 1 and {most}, not {self.steps}")
        environments, warmup = self.collection.environments, self.collection.warmup
        period = self.allocator.period
        window = self.actors.window + self.actors.n_step
        # A decision is over, and can be learned from, when the next one is made.
        _require(
            warmup >= 2 * period * environments,
            f"warmup must be at least {2 * period * environments} steps, for two allocations {period} steps apart "
            f"in {environments} environments, not {warmup}",
        )
        _require(
            warmup >= (window + period) * environments,
            f"warmup must be at least {(window + period) * environments} steps, for windows of {window} and the "
            f"decision before them in {environments} environments, not {warmup}",
        )
        _require(
            self.collection.buffer >= (window + period) * environments,
            f"buffer must be at least {(window + period) * environments} steps, for windows of {window} and the "
            f"decision before them in {environments} environments, not {self.collection.buffer}",
        )
        kept = self.collection.decisions // environments
        _require(
            self.allocator.n_step <= kept,
            f"allocator.n_step must be at most the {kept} decisions kept for each environment, not "
            f"{self.allocator.n_step}",
        )
        _require(
            self.allocator.max_age > 2 * period * environments,
            f"max_age must be more than {2 * period * environments} steps, so that there always is a decision to "
            f"learn from, not {self.allocator.max_age}",
        )


FAST = TrainingOptions()
"""Ours, for a machine with few cores: less work per unit of learning."""

LONG = replace(
    FAST,
    steps=12_000_000,
    play="average",
    allocator=replace(FAST.allocator, play_period=2, play_candidates=4),
    exploration=replace(FAST.exploration, action=Linear(1.0, 0.01, 500_000)),
    report=replace(FAST.report, evaluate_every=1_024_000, episodes=1024),
)
"""The same for half an hour: less is done at random in the end, and what was learned plays as an average, with new
allocations more often."""

PAPER = TrainingOptions(
    steps=15_000_000,
    play="live",
    actors=ActorOptions(
        gamma=0.99,
        learning_rate=5e-4,
        final_rate=1.0,
        optimiser="rmsprop",
        popart=True,
        batch=32,
        window=64,
        n_step=1,
        ends="subtask",
        target_rate=1.0,
        target_episodes=200,
        networks=ActorNetworkOptions(
            trunk="attention", relations=False, places=True, width=128, hidden=64, mixer="qmix", offsets="absolute"
        ),
    ),
    allocator=AllocatorOptions(
        gamma=0.99,
        learning_rate=5e-4,
        final_rate=1.0,
        optimiser="rmsprop",
        popart=True,
        batch=400,
        proposals=32,
        variations=0,
        entropy_proposals=32,
        target_rate=1.0,
        target_episodes=50,
        networks=AllocatorNetworkOptions(kind="pointer", relations=False, places=True, width=128),
    ),
    collection=CollectionOptions(
        environments=8,
        buffer=750_000,
        decisions=200_000,
        warmup=3_200,
        steps_per_update=8,  # whenever an episode is over
        episodes_per_update=1,
    ),
    exploration=ExplorationOptions(
        action=Linear(1.0, 0.05, 2_000_000),
        persistence=0.0,
        proposal=Linear(1.0, 0.05, 3_000_000),
        subtask=Linear(1.0, 0.0, 750_000),
    ),
    report=ReportOptions(chunk=512, log_every=10_240, evaluate_every=50_176, episodes=160),
)
"""The paper's table, and what is known of its experiments besides."""

FAITHFUL = replace(
    FAST,
    steps=5_000_000,
    actors=replace(
        FAST.actors, popart=True, ends="subtask", networks=replace(PAPER.actors.networks, relations=True, places=False)
    ),
    allocator=replace(
        FAST.allocator,
        popart=True,
        proposals=32,
        variations=0,
        entropy_proposals=32,
        networks=replace(PAPER.allocator.networks, relations=True, places=False),
    ),
)
"""The paper's networks, mixer and losses, with relations to see by, collected and scheduled as `fast` does."""

TINY = TrainingOptions(
    steps=20_480,
    actors=ActorOptions(batch=32, networks=ActorNetworkOptions(width=16, hidden=16)),
    allocator=AllocatorOptions(
        batch=16, proposals=4, variations=2, networks=AllocatorNetworkOptions(width=16, choice_width=8)
    ),
    collection=CollectionOptions(environments=16, buffer=16_384, decisions=4_096, warmup=1_280, steps_per_update=256),
    exploration=ExplorationOptions(
        action=Linear(1.0, 0.05, 10_000), proposal=Linear(1.0, 0.05, 10_000), subtask=Linear(1.0, 0.0, 10_000)
    ),
    report=ReportOptions(chunk=1_024, log_every=2_048, evaluate_every=10_240, episodes=64, final_episodes=64),
)
"""For tests and first looks: seconds, and nothing learned to speak of."""

PresetName: TypeAlias = Literal["fast", "long", "faithful", "paper", "tiny"]

PRESETS: Mapping[str, TrainingOptions] = {
    "fast": FAST,
    "long": LONG,
    "faithful": FAITHFUL,
    "paper": PAPER,
    "tiny": TINY,
}

IMAGINATION = 0.5
"""lambda of REFIL in the paper."""


def preset(name: str, task: str = "") -> TrainingOptions:
    """A set of hyperparameters, as it is changed for a task: by the paper, or by us."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}: choose from {', '.join(PRESETS)}")
    return FOR_TASKS[task](name) if task in FOR_TASKS else PRESETS[name]


def _for_starcraft(name: str) -> TrainingOptions:
    """Imagined groups, and allocations more often. Besides, in the paper's own preset its schedules; in ours an
    allocator that looks further ahead, since battles are won by what is done in many decisions, and fewer updates of
    the actors; with our networks also actions valued by their targets, larger rewards, and larger steps of learning."""
    options = with_actors(PRESETS[name], "refil")
    options = replace(options, allocator=replace(options.allocator, period=3))
    if name == "paper":
        exploration = replace(
            options.exploration,
            action=Linear(1.0, 0.05, 500_000),
            proposal=Linear(1.0, 0.05, 2_000_000),
            subtask=Linear(1.0, 0.0, 500_000),
        )
        return replace(options, steps=10_000_000, exploration=exploration)
    if name == "faithful":
        allocator = replace(options.allocator, gamma=0.99, updates=4, n_step=3)
        collection = replace(options.collection, steps_per_update=1024)
        return replace(options, steps=2_000_000, allocator=allocator, collection=collection)
    # What one action is worth more than another is less here than in a city: a shot, not a building.
    networks = replace(options.actors.networks, aim=16 if name == "tiny" else 64)
    options = replace(
        options,
        actors=replace(options.actors, networks=networks, reward_scale=4.0),
        allocator=replace(options.allocator, reward_scale=4.0),
    )
    if name == "tiny":
        return options
    return replace(
        options,
        steps=8_000_000 if name == "long" else 2_000_000,
        actors=replace(options.actors, learning_rate=6e-3),
        allocator=replace(
            options.allocator,
            gamma=0.99,
            learning_rate=3e-3,
            batch=256,
            updates=4,
            n_step=3,
            target_rate=0.05,
            play_period=0,
            play_candidates=1,
        ),
        collection=replace(options.collection, steps_per_update=1024),
    )


FOR_TASKS = {"starcraft": _for_starcraft}
"""Tasks whose presets differ."""


def with_actors(options: TrainingOptions, actors: Literal["aqmix", "refil"] | None) -> TrainingOptions:
    """Options for actors that learn by attention QMIX alone, or by REFIL; None leaves them as they are."""
    if actors is None:
        return options
    share = (options.actors.imagination or IMAGINATION) if actors == "refil" else 0.0
    return replace(options, actors=replace(options.actors, imagination=share))
