"""`alma reproduce`."""

import json

import pytest
from commandline import run

from alma.commands import reproduce
from alma.reproduce.running import MINUTES_PER_MILLION


def test_reproduce_says_what_it_would_run(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(MINUTES_PER_MILLION, ("starcraft", "fast"), 10.0)
    run("reproduce", "spread", "--seeds", "0", "--dry-run", "--out", tmp_path)
    printed = capsys.readouterr().out
    assert "sz-disadvantage_alma_fast_0" in printed
    assert "sz-disadvantage_flat_fast_0" in printed
    # Two million steps, and a minute and a half besides: 21.5 minutes for ALMA, 17.5 for flat.
    assert "about 39 min on 2 cores" in " ".join(printed.split())
    assert not any(tmp_path.iterdir())


def test_the_command_that_makes_a_figure_is_written_beside_it(tmp_path):
    part = ("--seeds", "0,3", "--methods", "alma", "flat", "--settings", "sz-symmetric")
    run("reproduce", "starcraft", *part, "--no-train", "--no-plots", "--out", tmp_path)
    written = json.loads((tmp_path / "starcraft" / "summary.json").read_text())["command"]
    assert written == " ".join(("alma reproduce starcraft", *part))


def test_figures_are_written_before_failures_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "train_all", lambda *_: ["one: the reason", "two: another"])
    with pytest.raises(SystemExit, match="one: the reason; two: another"):
        run("reproduce", "spread", "--no-plots", "--out", tmp_path)
    assert (tmp_path / "spread" / "table.md").exists()


def test_reproduce_shows_what_is_there(capsys, tmp_path):
    run("reproduce", "spread", "--no-train", "--out", tmp_path)
    assert "20 points are missing" in capsys.readouterr().out.replace("\n", " ")
    assert len(json.loads((tmp_path / "spread" / "summary.json").read_text())["missing"]) == 20
