"""`alma reproduce`."""

import json

from commandline import run

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


def test_reproduce_shows_what_is_there(capsys, tmp_path):
    run("reproduce", "spread", "--no-train", "--out", tmp_path)
    assert "20 points are missing" in capsys.readouterr().out.replace("\n", " ")
    assert len(json.loads((tmp_path / "spread" / "summary.json").read_text())["missing"]) == 20
