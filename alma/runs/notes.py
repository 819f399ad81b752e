"""Checking the notes of a checkpoint: training time, evaluations and metrics so far, beside the train state."""

from pathlib import Path
from typing import Any

from alma.files import brief
from alma.play.summary_check import check_numbers, check_summary, is_number
from alma.runs.checkpoint import CheckpointError


def check_notes(path: Path, notes: dict[str, Any]) -> None:
    """Raise a CheckpointError unless the notes of a checkpoint are such as a run writes."""
    try:
        check_numbers(notes, "seconds", whole=("devices",) if "devices" in notes else ())
        kinds = {"config": dict, "evaluations": list, "metrics": dict}
        if wrong := [name for name, kind in kinds.items() if not isinstance(notes.get(name), kind)]:
            raise ValueError(f"{wrong[0]} is missing")
        for evaluation in notes["evaluations"]:
            if not isinstance(evaluation, dict):
                raise ValueError("evaluations must be tables")
            check_numbers(evaluation, "minutes", whole=("step",))
            check_summary(evaluation)
        if notes["metrics"].keys() != {"totals", "steps"} or not isinstance(notes["metrics"]["totals"], dict):
            raise ValueError("metrics must have totals and steps")
        check_numbers(notes["metrics"], whole=("steps",))
        if not all(is_number(value) for value in notes["metrics"]["totals"].values()):
            raise ValueError("totals of metrics must be numbers")
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: its notes are not such as a run writes: {brief(error)}") from None
