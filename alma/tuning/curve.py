"""The learning curve of a run, read from its metrics while it is being trained."""

from collections.abc import Mapping

from alma.runs.folder import RunFolder
from alma.runs.metrics import EVALUATION, read_metrics


def learning_curve(folder: RunFolder, metric: str) -> Mapping[int, float]:
    """A metric of all evaluations so far, by environment step."""
    name = f"{EVALUATION}{metric}"
    return {line["step"]: line[name] for line in read_metrics(folder.metrics) if name in line}
