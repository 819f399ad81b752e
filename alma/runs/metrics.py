"""The metrics of a run, as they are logged: what every name means, and how those of several chunks are combined."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alma.files import brief, read_json_lines
from alma.play.summary_check import check_numbers, check_summary, is_number

EVALUATION = "evaluation/"
"""Prefix of the names of metrics of evaluations."""

METRICS = {
    # Every line.
    "step": "environment steps so far",
    "minutes": "minutes of training so far, without compilation and evaluation",
    # Lines about training: every `report.log_every` steps, about the steps since the last such line.
    "episodes": "episodes that ended",
    "updates": "gradient updates of the actors",
    "reward_per_step": "mean reward of an environment step",
    "simulator_faults": "episodes that were cut off because a simulator in Python raised an error, hung or died",
    "solved_while_exploring": "fraction of episodes that ended in success",
    "steps_per_second": "environment steps per second, in the last chunk",
    "explore_action": "fraction of actions that are random (epsilon)",
    "explore_proposal": "probability of taking the first sampled allocation instead of the best (epsilon_p)",
    "explore_subtask": "probability that an agent is given a random subtask (epsilon_r)",
    "actor_loss": "mean squared TD error of the actors, in the normalised units of the loss with Pop-Art",
    "actor_value": "mean value of subtasks under the actors' live network",
    "imagined_loss": "REFIL: the same error with utilities of imagined groups",
    "recognition_loss": "COPA: negative log-likelihood of the coach's strategies under the recogniser",
    "strategy_entropy": "COPA: entropy of the coach's strategies",
    "critic_loss": "mean squared TD error of the allocator's critic",
    "allocation_value": "mean value of allocations under the critic",
    "proposal_loss": "cross-entropy of the proposal network with the best candidate, minus the entropy bonus",
    "proposal_entropy": "entropy of the proposal network",
    "critics_loss": "Thompson sampling: mean squared TD error of the critics that explore",
    "critics_spread": "Thompson sampling: standard deviation of the value of an allocation between these critics",
    # Lines about evaluations: greedy episodes, every `report.evaluate_every` steps.
    "evaluation/episodes": "episodes played",
    "evaluation/success_rate": "fraction of episodes that ended in success",
    "evaluation/interval": "95 % Wilson interval of that fraction",
    "evaluation/mean_return": "mean undiscounted return",
    "evaluation/mean_length": "mean number of steps",
    "evaluation/switches_per_step": "how often an agent is moved from an active subtask to another, per agent and step",
    "evaluation/unattended_subtasks": "mean number of active subtasks without an agent",
    "evaluation/by_team_size": "episodes, success rate and interval for each team size",
    "evaluation/mean_*": "mean over episodes of each metric of the task (`Outcome.metrics`), summed over steps",
    "evaluation/mean_completed": "SaveTheCity: mean fraction of the buildings of a city that were completed",
    "evaluation/mean_burned_down": "SaveTheCity: mean number of buildings that burned down in an episode",
    "evaluation/mean_extinguished": "SaveTheCity: mean number of fires that were put out in an episode",
    "evaluation/mean_kills": "StarCraft: mean number of enemies killed in an episode",
    "evaluation/mean_deaths": "StarCraft: mean number of own units lost in an episode",
    "evaluation/mean_breached": "StarCraft: fraction of episodes in which an army got into the base",
    "evaluation/mean_timed_out": "StarCraft: fraction of episodes that the time limit ended",
    "evaluation/mean_joint_shots": "StarCraft: orders to attack an army that another agent attacks in the same step, "
    "mean sum over an episode",
    "evaluation/mean_focused_shots": "StarCraft: those of them at the enemy of the army that most agents attack; "
    "divided by mean_joint_shots, this is the focus of fire, from 0 to 1",
}
"""The meaning of every entry of `metrics.jsonl`, TensorBoard and W&B. Methods of your own may add more."""

SUMS: Mapping[str, tuple[str, str | None]] = {
    "episodes": ("episodes", None),
    "updates": ("updates", None),
    "reward": ("reward_per_step", "steps"),
    "faults": ("simulator_faults", None),
    "solved": ("solved_while_exploring", "episodes"),
}
"""Metrics of a chunk that are sums over its environment steps; the others are means over its updates.

For each its name in the log, and what it is divided by there: environment steps, another of these sums, or nothing.
"""


@dataclass
class MetricAccumulator:
    """Combines the metrics of several chunks between two log lines."""

    totals: dict[str, float] = field(default_factory=dict)
    """Sums over environment steps (`SUMS`) and over updates (all others)."""
    steps: int = 0

    def add(self, metrics: dict[str, float], steps: int) -> None:
        self.steps += steps
        updates = metrics["updates"]
        for name, value in metrics.items():
            weight = 1.0 if name in SUMS else updates
            self.totals[name] = self.totals.get(name, 0.0) + weight * value

    def metrics(self) -> dict[str, float]:
        """The combined metrics: counts, rates per step and episode, and means over updates.

        Without those that would be divided by 0.
        """
        totals = self.totals
        divisors = {None: 1.0, "steps": float(self.steps)} | totals
        sums = {
            name: totals[raw] / divisors[divisor]
            for raw, (name, divisor) in SUMS.items()
            if raw in totals and divisors[divisor]
        }
        updates = totals["updates"]
        means = {name: value / updates for name, value in totals.items() if name not in SUMS and updates}
        return {**sums, **means}


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl`, in the order of their steps; none if there is no such file.

    Raises a ValueError that names file and line if one of them is not as we write it.
    """
    lines = read_json_lines(path)
    before = 0
    for number, line in enumerate(lines, 1):
        try:
            check_line(line)
            if line["step"] < before:
                raise ValueError(f"step {line['step']:,} comes after step {before:,}")
        except ValueError as error:
            raise ValueError(f"{path} is damaged in line {number}: {brief(error)}; delete that line") from None
        before = line["step"]
    return lines


def check_line(line: dict[str, Any]) -> None:
    """Raise a ValueError unless a line is one that a run writes."""
    check_numbers(line, "minutes", whole=("step",))
    summary = evaluation_in(line)
    if summary:
        check_summary(summary)
    for name, value in line.items():
        if not name.startswith(EVALUATION) and not is_number(value):
            raise ValueError(f"{name} must be a number")


def evaluation_in(line: dict[str, Any]) -> dict[str, Any]:
    """The summary of episodes in a line of metrics; empty if it is not about an evaluation."""
    return {name.removeprefix(EVALUATION): value for name, value in line.items() if name.startswith(EVALUATION)}
