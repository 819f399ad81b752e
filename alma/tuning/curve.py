"""The learning curve of a run, read from its metrics while it is being trained."""

from collections.abc import Mapping

from alma.files import read_json_lines
from alma.runs.folder import RunFolder


def learning_curve(folder: RunFolder, metric: str) -> Mapping[int, float]:
    """A metric of all evaluations so far, by environment step."""
    name = f"evaluation/{metric}"
    return {line["step"]: line[name] for line in read_json_lines(folder.metrics) if name in line}
