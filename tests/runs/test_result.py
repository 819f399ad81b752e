"""Results from files."""

import json

import pytest
from helpers.summaries import made_up_result, made_up_summary

from alma.runs.result import read_result

WHOLE = made_up_result(2_048, 1.5, made_up_summary(7, 10), weights="0a")


def test_a_result_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json.dumps(WHOLE))
    assert read_result(file) == WHOLE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 1_024}, "last evaluation is of another step"),
        ({"step": "2048"}, "step must be a whole number"),
        ({"training_minutes": float("inf")}, "training_minutes must be a number"),
        ({"evaluation": []}, "evaluation must be a table"),
        ({"evaluation": {**WHOLE["evaluation"], "success_rate": 0.8}}, "interval is not that of 8 of 10 episodes"),
    ],
)
def test_a_changed_result_is_refused_by_its_name(tmp_path, change, message):
    file = tmp_path / "result.json"
    file.write_text(json.dumps({**WHOLE, **change}))
    with pytest.raises(ValueError, match=rf"result\.json is damaged: .*{message}"):
        read_result(file)
