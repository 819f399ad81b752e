"""`alma compare`, on runs that are published."""

from pathlib import Path

import pytest
from rich.console import Console

from alma.cli import compare
from alma.cli.main import run

RUNS = Path(__file__).parents[2] / "results" / "runs"


def test_published_runs_are_compared_as_published(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare, "console", Console(width=200))  # wide enough for whole cells
    runs = [str(RUNS / f"save-the-city_{method}_fast_{seed}") for method in ("flat", "random") for seed in (0, 1)]
    run(["compare", *runs, "--out", str(tmp_path / "out"), "--no-plots"])
    text = capsys.readouterr().out
    assert "random allocation" in text
    table = (RUNS.parent / "save-the-city" / "table.md").read_text().splitlines()
    (solved,) = [line.split("|")[5].strip() for line in table if line.startswith("| random allocation |")]
    assert solved in text, "the same statistics as in the paper's figures"
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".json", ".csv", ".md"}


def test_what_stands_in_the_way_is_told_before_anything_is_played(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="is a file: choose a folder with --out"):
        run(["compare", str(RUNS / "save-the-city_flat_fast_0"), "--out", str(tmp_path / "file")])
    with pytest.raises(SystemExit, match="nowhere is no run folder"):
        run(["compare", "nowhere", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
