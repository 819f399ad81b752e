"""An engine that trains nothing: what becomes of each attempt at a run is told beforehand."""

import json
from dataclasses import dataclass, field

from alma.launch.engine import ALIVE, Status
from helpers.summaries import made_up_result, made_up_summary

FINISHED, FAILED, DIED = "finished", "failed", "died"


@dataclass
class Pretended:
    """An attempt that ends as told, or when it is stopped."""

    job: object
    fate: str | None
    stopped: bool = False

    def status(self):
        if self.stopped:
            return Status("lost", 130, "its process was asked to stop")
        match self.fate:
            case "finished":
                return Status("ended")
            case "failed":
                self.job.folder.log.write_text("the reason\n")
                return Status("ended", 1)
            case "died":
                return Status("lost", reason="the node is gone")
        return ALIVE

    def stop(self):
        self.stopped = True


def finish(job, success_rate=0.5):
    """Write what a finished run writes."""
    evaluation = made_up_summary(round(100 * success_rate), 100, mean_return=10 * success_rate)
    job.folder.result.write_text(json.dumps(made_up_result(job.config.options.steps, 1.0, evaluation)))


@dataclass
class PretendEngine:
    """Runs end at once; attempts at a run, by its name, as in `fates`, and then they finish."""

    room: int = 2
    fates: dict = field(default_factory=dict)
    finish: object = finish
    begun: list = field(default_factory=list)
    attempts: list = field(default_factory=list)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def has_room(self):
        return sum(attempt.status() == ALIVE for attempt in self.attempts) < self.room

    def start(self, job):
        fates = self.fates.get(job.name, [])
        attempt = Pretended(job, fates.pop(0) if fates else FINISHED)
        if attempt.fate == FINISHED:
            self.finish(job)
        self.begun.append(job.name)
        self.attempts.append(attempt)
        return attempt
