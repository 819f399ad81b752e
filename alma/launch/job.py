"""A run to train, and what it needs: the unit of work of all engines."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from alma.launch.estimate import SPEEDUP, training_minutes
from alma.runs.config import RunConfig, differences, learning_config
from alma.runs.folder import RunFolder
from alma.runs.metrics import read_metrics
from alma.runs.policy import WEIGHTS

MOST_NAMED = 3
"""Most differences between two configurations that an error names."""


@dataclass(frozen=True)
class Resources:
    """Cores, memory and accelerators of each run."""

    cores: int
    """Processor cores. Only runs with the same number of cores are equal bit for bit."""
    memory: float | None = None
    """Memory in GB; None leaves it to the engine."""
    gpus: int = 0
    """Accelerators."""

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ValueError(f"a run needs at least 1 core, not {self.cores}")
        if self.memory is not None and self.memory <= 0:
            raise ValueError(f"memory must be positive, in GB, not {self.memory}")
        if self.gpus < 0:
            raise ValueError(f"gpus must be 0 or more, not {self.gpus}")


@dataclass(frozen=True, eq=False)
class Job:
    """A run to train, new or already in its folder."""

    folder: RunFolder
    config: RunConfig
    arguments: tuple[str, ...] = ()
    """Further arguments of `alma resume`."""

    @property
    def resume_arguments(self) -> tuple[str, ...]:
        """All arguments of `alma resume` besides the folder: code of the user's own was named with the run."""
        return (*(("--trust",) if self.config.own_code else ()), *self.arguments)

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def state(self) -> Literal["finished", "published", "begun", "new"]:
        """The state of the run. Published runs are finished runs without weights."""
        if self.folder.result.exists():
            return "finished" if (self.folder.path / WEIGHTS).exists() else "published"
        if not self.folder.config.exists() or (self.folder.is_blank() and self._was_another()):
            return "new"
        return "begun"

    def _was_another(self) -> bool:
        """Whether the configuration in the folder is missing, unreadable, or that of a run with other options."""
        try:
            there = self.folder.read_config(trust=True)
        except ValueError:
            return True
        return learning_config(there) != learning_config(self.config)

    @property
    def done(self) -> bool:
        return self.state in ("finished", "published")

    @property
    def step(self) -> int:
        """Environment steps so far, from its last line of metrics."""
        if self.done:
            return self.config.options.steps
        lines = self.metrics
        return lines[-1]["step"] if lines else 0

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics so far; none if the file is damaged, which the process of the run will report."""
        try:
            return read_metrics(self.folder.metrics)
        except ValueError:
            return []

    @property
    def minutes(self) -> float:
        """Estimated minutes left, on 2 cores."""
        if self.done:
            return 0.0
        return training_minutes(self.config) * (1 - self.step / self.config.options.steps)

    def check(self, force: bool = False) -> None:
        """Raise a ValueError if the folder holds another run than this one, or, with `force`, no run at all."""
        if self.state == "new" or force:
            self.folder.check_free(force)
            return
        learns = self.config.make_team().allocator.learns
        there = self.folder.read_config(trust=True)  # only compared: what it names is not imported
        other = list(differences(_compared_config(self.config, learns), _compared_config(there, learns)))
        if other:
            more = f"; and {len(other) - MOST_NAMED} more" if len(other) > MOST_NAMED else ""
            raise ValueError(
                f"{self.folder.path} holds a run with other options ({'; '.join(other[:MOST_NAMED])}{more}): "
                "choose another --out, or move that folder away"
            )

    def last_words(self) -> str:
        """The last line of the run's log, and where the log is."""
        log = self.folder.log
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return f"{lines[-1] if lines else 'nothing was printed'} (see {log})"


def _compared_config(config: RunConfig, learns_to_allocate: bool) -> dict[str, Any]:
    """The part of a configuration that two runs must have in common to be the same run, as data read from JSON.

    Unlike `learning_config`, which a checkpoint must have in common with the run that loads it, this has the number of
    steps, and lacks the options of a learned allocator if the method has none.
    """
    parts = json.loads(json.dumps(asdict(config)))
    options = parts["options"]
    del options["report"]
    if not learns_to_allocate:
        options["allocator"] = {name: options["allocator"][name] for name in ("period", "play_period")}
        del options["exploration"]["proposal"], options["exploration"]["subtask"]
    return parts


def time_for(jobs: Iterable[Job], parallel: int) -> float:
    """Estimated minutes left for all jobs, on 2 cores."""
    return sum(job.minutes for job in jobs) / (SPEEDUP if parallel > 1 else 1)
