"""Everything that makes a training run, apart from the task and the method."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from alma.actors.options import ActorOptions
from alma.allocators.options import AllocatorOptions
from alma.learning.options import require, require_at_least, require_positive
from alma.learning.schedules import Linear
from alma.task.spec import LARGEST_INTEGER


@dataclass(frozen=True)
class CollectionOptions:
    """Collection of experience, and replay."""

    environments: int = 128
    """Environments that run in parallel."""
    buffer: int = 524_288
    """Size of the actors' replay buffer, in environment steps."""
    decisions: int = 131_072
    """Size of the allocator's replay buffer, in decisions."""
    warmup: int = 10_240
    """Environment steps before the first update."""
    steps_per_update: int = 256
    """Environment steps between updates, counted over all environments."""
    episodes_per_update: int = 0
    """Finished episodes that each update waits for; 0: updates do not wait for episodes."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "environments")
        require_at_least(0, self, "episodes_per_update")
        for name in ("buffer", "decisions", "warmup", "steps_per_update"):
            require(
                getattr(self, name) >= self.environments,
                f"{name} must be at least the number of environments ({self.environments}), not {getattr(self, name)}",
            )
        require(
            self.steps_per_update % self.environments == 0,
            f"steps_per_update must be a multiple of the {self.environments} environments, not {self.steps_per_update}",
        )


@dataclass(frozen=True)
class ExplorationOptions:
    """Exploration: probabilities of random choices, each of which changes linearly with environment steps."""

    action: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 250_000))
    """Fraction of actions that are random (epsilon)."""
    persistence: float = 0.8
    """Probability that a random action is repeated in the next step if it can be, since going somewhere takes several
    steps."""
    proposal: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 400_000))
    """Probability of taking the first sampled allocation instead of the best (epsilon_p)."""
    subtask: Linear = field(default_factory=lambda: Linear(1.0, 0.0, 250_000))
    """Probability that an agent is given a random subtask at a decision (epsilon_r); with allocator.exploration.kind
    noise, the factor on the deviation of the noise. Kind thompson uses neither this nor `proposal`."""

    def __post_init__(self) -> None:
        for name in ("action", "proposal", "subtask"):
            schedule = getattr(self, name)
            require(
                0 <= schedule.start <= 1 and 0 <= schedule.end <= 1,
                f"{name} must start and end between 0 and 1, not at {schedule.start} and {schedule.end}",
            )
        require(0 <= self.persistence < 1, f"persistence must lie in [0, 1), not {self.persistence}")


@dataclass(frozen=True)
class ReportOptions:
    """Logs, evaluations, checkpoints, and the length of a compiled call; a run is made of whole chunks."""

    chunk: int = 5_120
    """Environment steps per compiled call; a run can log, evaluate and stop after each."""
    log_every: int = 25_600
    """Environment steps between entries of metrics."""
    evaluate_every: int = 204_800
    """Environment steps between evaluations; there is always one at the end."""
    episodes: int = 256
    """Greedy episodes per evaluation."""
    final_episodes: int = 1024
    """Greedy episodes of the last evaluation."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "chunk", "log_every", "evaluate_every", "episodes", "final_episodes")
        require_positive(self, "checkpoint_minutes")


@dataclass(frozen=True)
class TrainingOptions:
    """Everything that makes a training run, apart from the task and the method."""

    steps: int = 3_000_000
    """Environment steps to train for."""
    play: Literal["live", "target", "average"] = "target"
    """Which parameters play, that is, are evaluated and saved as the policy: those that are being trained (live), those
    of the target networks (target), or a running average of the live ones over about the last tenth of all updates so
    far (average), for long runs."""
    actors: ActorOptions = field(default_factory=ActorOptions)
    allocator: AllocatorOptions = field(default_factory=AllocatorOptions)
    collection: CollectionOptions = field(default_factory=CollectionOptions)
    exploration: ExplorationOptions = field(default_factory=ExplorationOptions)
    report: ReportOptions = field(default_factory=ReportOptions)

    @property
    def updates_per_chunk(self) -> int:
        """Rounds of playing and learning in one compiled call."""
        return max(1, self.report.chunk // self.collection.steps_per_update)

    @property
    def chunk_steps(self) -> int:
        """Environment steps of one compiled call."""
        return self.updates_per_chunk * self.collection.steps_per_update

    @property
    def whole_steps(self) -> int:
        """Environment steps that are trained: `steps`, rounded up to whole compiled calls."""
        return -(-self.steps // self.chunk_steps) * self.chunk_steps

    def __post_init__(self) -> None:
        most = 2_000_000_000  # steps are counted in 31 bits
        require(1 <= self.steps <= most, f"steps must lie between 1 and {most}, not {self.steps}")
        _check_counts(self)
        environments, warmup = self.collection.environments, self.collection.warmup
        period = self.allocator.period
        window = self.actors.window + self.actors.n_step
        # A decision can be learned from when the next one has been made.
        require(
            warmup >= 2 * period * environments,
            f"warmup must be at least {2 * period * environments} steps, for two allocations {period} steps apart "
            f"in {environments} environments, not {warmup}",
        )
        require(
            warmup >= (window + period) * environments,
            f"warmup must be at least {(window + period) * environments} steps, for windows of {window} and the "
            f"decision before them in {environments} environments, not {warmup}",
        )
        require(
            self.collection.buffer >= (window + period) * environments,
            f"buffer must be at least {(window + period) * environments} steps, for windows of {window} and the "
            f"decision before them in {environments} environments, not {self.collection.buffer}",
        )
        kept = self.collection.decisions // environments
        require(
            self.allocator.n_step <= kept,
            f"allocator.n_step must be at most the {kept} decisions kept for each environment, not "
            f"{self.allocator.n_step}",
        )
        require(
            self.allocator.max_age > 2 * period * environments,
            f"max_age must be more than {2 * period * environments} steps, so that there always is a decision to "
            f"learn from, not {self.allocator.max_age}",
        )


def _check_counts(options: Any, path: str = "") -> None:
    """Raise a ValueError if a whole number among nested options is larger than compiled programs can count."""
    for part in fields(options):
        value = getattr(options, part.name)
        if is_dataclass(value):
            _check_counts(value, f"{path}{part.name}.")
        elif isinstance(value, int):
            require(value <= LARGEST_INTEGER, f"{path}{part.name} must be at most {LARGEST_INTEGER}, not {value}")


def with_overrides(options: Any, overrides: Mapping[str, Any]) -> Any:
    """Options with some of them changed, each named by its path: `allocator.period`."""
    changed: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    names = [field.name for field in fields(options)]
    for path, value in overrides.items():
        name, _, rest = path.partition(".")
        if name not in names:
            raise ValueError(f"there is no option {name!r} among {', '.join(names)}")
        if rest:
            nested.setdefault(name, {})[rest] = value
        else:
            changed[name] = value
    # All at once, since options are checked together.
    changed |= {
        name: with_overrides(changed.get(name, getattr(options, name)), inner) for name, inner in nested.items()
    }
    return replace(options, **changed)
