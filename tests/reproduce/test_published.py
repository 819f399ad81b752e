"""Published figures are those that the code of today makes of the published runs."""

import json
import re
from pathlib import Path

import pytest
from helpers.commandline import run

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = sorted(RESULTS.glob("*/summary.json"))
assert PUBLISHED
DECIMAL = r"-?\d+\.\d+(?:e-?\d+)?"


@pytest.mark.parametrize("summary", PUBLISHED, ids=lambda summary: summary.parent.name)
def test_published_files_can_be_written_again(summary, tmp_path):
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    _, *words = json.loads(summary.read_text())["command"].split()
    run(*words, "--no-train", "--no-plots", "--out", tmp_path)
    written = sorted((tmp_path / summary.parent.name).iterdir())
    assert {"table.md", "scores.csv", "marl_eval.json", "summary.json"} <= {file.name for file in written}
    for file in written:
        words, numbers = taken_apart(file)
        published_words, published_numbers = taken_apart(summary.parent / file.name)
        assert words == published_words
        # Other processors may add up in another order; where numbers are rounded, that can make one unit.
        assert numbers == pytest.approx(published_numbers, rel=1e-9, abs=1.01e-3 if file.name == "table.md" else 1e-9)


def taken_apart(file):
    """The text between decimal numbers, and those numbers."""
    text = file.read_text()
    return re.split(DECIMAL, text), [float(number) for number in re.findall(DECIMAL, text)]
