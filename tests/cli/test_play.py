"""`alma play`."""

import json

from helpers.commandline import run


def test_play_prints_one_json_object(capsys):
    run("play", "save-the-city", "--episodes", 12, "--json", "--set", "agents=2..3", "--set", "max_steps=20")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 12
    assert (result["actors"], result["allocator"]) == ("scripted", "heuristic")
    assert 0 <= result["interval"][0] <= result["success_rate"] <= result["interval"][1] <= 1
    assert set(result["by_team_size"]) <= {"2", "3"}
    assert sum(row["episodes"] for row in result["by_team_size"].values()) == 12


def test_play_prints_a_table_and_draws(capsys, tmp_path):
    out = tmp_path / "new" / "episode.gif"
    run("play", "save-the-city", "--set", "max_steps=5", "--out", out)
    assert "solved" in capsys.readouterr().out
    assert out.stat().st_size > 0


BARE = """
from dataclasses import dataclass
from helpers import doors

@dataclass(frozen=True)
class Bare(doors.Doors):
    heuristics = {}
    policies = {}
"""


def test_tasks_without_scripts_and_heuristics_are_played_at_random(capsys, tmp_path, monkeypatch):
    (tmp_path / "bare_task.py").write_text(BARE)
    monkeypatch.syspath_prepend(tmp_path)
    run("play", "bare_task:Bare", "--json")
    result = json.loads(capsys.readouterr().out)
    assert (result["actors"], result["allocator"]) == ("random", "random")
    assert result["episodes"] == 1
