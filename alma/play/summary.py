"""Results of episodes, and their summary statistics."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy  # scipy.stats is loaded lazily, on first use: importing it takes most of a second
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class Results:
    """Results of N episodes, one row each."""

    success: Bool[np.ndarray, "N"]
    total: Float[np.ndarray, "N"]
    """Undiscounted returns."""
    length: Int[np.ndarray, "N"]
    """Steps."""
    team_size: Int[np.ndarray, "N"]
    """Agents present at the beginning."""
    switches: Float[np.ndarray, "N"]
    """How often an agent was moved to another subtask while its own was still active."""
    unattended: Float[np.ndarray, "N"]
    """The number of active subtasks without an agent, summed over steps."""
    metrics: dict[str, Float[np.ndarray, "N"]]
    """The task's metrics, summed over steps."""

    def __repr__(self) -> str:
        rate, mean = self.success_rate, self.mean_return
        return f"Results({len(self.success)} episodes, success rate {rate:.3f}, mean return {mean:.2f})"

    @property
    def success_rate(self) -> float:
        """The fraction of episodes that ended in success."""
        return float(np.mean(self.success))

    @property
    def mean_return(self) -> float:
        """The mean undiscounted return."""
        return float(np.mean(self.total))

    def summary(self) -> dict[str, Any]:
        """Means, and success rates with 95 % intervals, overall and by team size; ready for JSON."""
        success = {int(size): self.success[self.team_size == size] for size in np.unique(self.team_size)}
        return {
            **rate_with_interval(self.success),
            "mean_return": self.mean_return,
            "mean_length": float(np.mean(self.length)),
            "switches_per_step": float(np.sum(self.switches) / np.sum(self.length * self.team_size)),
            "unattended_subtasks": float(np.sum(self.unattended) / np.sum(self.length)),
            **{f"mean_{name}": float(np.mean(values)) for name, values in self.metrics.items()},
            "by_team_size": {str(size): rate_with_interval(rows) for size, rows in success.items()},
        }


def join(parts: list[Results]) -> Results:
    """Concatenate the rows of several results."""
    columns = [vars(part) for part in parts]
    return Results(**jax.tree.map(lambda *column: np.concatenate(column), *columns))


def rate_with_interval(success: Bool[np.ndarray, "N"]) -> dict[str, Any]:
    """The number of episodes, their success rate, and its 95 % Wilson interval."""
    test = scipy.stats.binomtest(int(np.sum(success)), len(success))
    interval = test.proportion_ci(confidence_level=0.95, method="wilson")
    return {
        "episodes": len(success),
        "success_rate": float(np.mean(success)),
        "interval": [float(interval.low), float(interval.high)],
    }
