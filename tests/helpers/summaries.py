"""Made-up summaries and results, such as a run writes."""

import numpy as np

from alma.play.summary import rate_with_interval


def made_up_summary(solved, episodes, mean_return=0.0, mean_length=5.0):
    """A summary of episodes, the first of which are solved; all have two agents."""
    rate = rate_with_interval(np.arange(episodes) < solved)
    means = {"mean_return": mean_return, "mean_length": mean_length}
    return {**rate, **means, "switches_per_step": 0.0, "unattended_subtasks": 0.0, "by_team_size": {"2": rate}}


def made_up_result(step, minutes, evaluation, **more):
    """The contents of a `result.json`."""
    last = {"step": step, "minutes": minutes, **evaluation}
    return {"step": step, "training_minutes": minutes, "evaluation": last, **more}
