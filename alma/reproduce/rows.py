"""The rows of a figure's table: the final performance of every method at each point, over all seeds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from alma.reproduce.scores import Score
from alma.reproduce.statistics import Estimate, final_score, probability_of_improvement


@dataclass(frozen=True)
class Row:
    """The final performance of one method at one point of a figure."""

    panel: str
    label: str
    at: float | None
    """The value on the axis of a sweep."""
    seeds: tuple[int, ...]
    steps: int
    minutes: float
    """Training time of the fastest seed; slower ones may have shared the machine with other runs."""
    solved: Estimate
    mean_return: float
    improvement: Estimate | None
    """Probability that the figure's reference does better; None for the reference itself, and if it was not run. Runs
    that are not part of a sweep are compared with all points of it, without an interval, since points are no sample."""

    @property
    def record(self) -> dict[str, Any]:
        """The row as JSON data."""
        names = ("panel", "label", "at", "seeds", "steps", "minutes", "mean_return")
        return {
            **{name: getattr(self, name) for name in names},
            "solved": vars(self.solved),
            "probability_of_improvement": self.improvement and vars(self.improvement),
        }


def rows_of(scores: list[Score], reference: str) -> list[Row]:
    """The rows of all points, in the order of the figure."""
    points = dict.fromkeys((score.case.panel, score.case.label, score.case.at) for score in scores)
    return [_row(scores, reference, *point) for point in points]


def _row(scores: list[Score], reference: str, panel: str, label: str, at: float | None) -> Row:
    here = [score for score in scores if score.case.panel == panel]
    mine = [score for score in here if (score.case.label, score.case.at) == (label, at)]
    ours = [score for score in here if score.case.label == reference and at in (None, score.case.at)]
    values = {score.case.at for score in ours}
    return Row(
        panel,
        label,
        at,
        seeds=tuple(score.seed for score in mine),
        steps=max(score.run["step"] for score in mine),
        minutes=min(score.run["training_minutes"] for score in mine),
        solved=final_score(_successes(mine)),
        mean_return=float(np.mean([score.summary["mean_return"] for score in mine])),
        improvement=None if label == reference or not ours else _improvement(ours, mine, len(values) > 1),
    )


def _improvement(ours: list[Score], theirs: list[Score], swept: bool) -> Estimate:
    found = probability_of_improvement(_successes(ours), _successes(theirs))
    return Estimate(found.value) if swept else found


def _successes(scores: list[Score]) -> Bool[np.ndarray, "S E"]:
    return np.stack([score.successes for score in scores])
