"""Reading `result.json`, the results of a finished run."""

from pathlib import Path
from typing import Any

from alma.files import brief, read_json
from alma.play.summary_check import check_numbers, check_summary


def read_result(path: Path) -> dict[str, Any]:
    """The contents of a `result.json`. Raises a ValueError that names the file if it is not as we write it."""
    result = read_json(path)
    try:
        check_result(result)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {brief(error)}; restore it, or leave the run out") from None
    return result


def check_result(result: dict[str, Any]) -> None:
    """Raise a ValueError unless a result is one that a run writes."""
    check_numbers(result, "training_minutes", whole=("step",))
    evaluation = result.get("evaluation")
    if not isinstance(evaluation, dict):
        raise ValueError("evaluation must be a table")
    check_numbers(evaluation, "minutes", whole=("step",))
    check_summary(evaluation)
    if evaluation["step"] != result["step"] or evaluation["minutes"] != result["training_minutes"]:
        raise ValueError("its last evaluation is of another step or minute than its end")
