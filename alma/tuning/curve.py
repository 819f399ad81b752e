"""The learning curve of a run, read from its metrics while it is being trained."""

from collections.abc import Mapping

from alma.launch.job import Job
from alma.runs.metrics import EVALUATION


def learning_curve(job: Job, metric: str) -> Mapping[int, float]:
    """A metric of all evaluations so far, by environment step."""
    name = f"{EVALUATION}{metric}"
    return {line["step"]: line[name] for line in job.metrics if name in line}
