"""`alma demo`, and what a user does with its run: `alma evaluate`, `alma resume`."""

import json

import pytest
from helpers.commandline import run


def test_from_the_demo_to_a_longer_run(capsys, tmp_path):
    """The demo trains and draws; what it saved is evaluated, and goes on for longer: one run, since compiling it takes
    most of the time."""
    run("demo", "--preset", "tiny", "--steps", 2048, "--episodes", 8, "--out", tmp_path)
    printed = capsys.readouterr()
    assert "solved 0.0% before" in printed.out.replace("\n", "")
    assert "steps, 0:0" in printed.err, "lines, since this is no terminal"
    assert (tmp_path / "save-the-city.gif").stat().st_size > 0
    out = tmp_path / "run"
    assert (out / "result.json").exists()

    run("evaluate", out, "--episodes", 8, "--json", "--set", "agents=2,3")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 8
    assert result["method"] == "alma"
    assert 0 <= result["switches_per_step"] <= 1
    assert "unattended_subtasks" in result
    assert set(result["by_team_size"]) <= {"2", "3"}

    run("evaluate", out, "--episodes", 4, "--json", "--actors", out, "--allocator", "search", "--set", "agents=2")
    result = json.loads(capsys.readouterr().out)
    assert (result["actors"], result["allocator"]) == (str(out), "search")
    assert result["task_options"] == {"agents": 2}
    run("evaluate", out, "--episodes", 4, "--json", "--actors", "scripted", "--allocator", "heuristic")
    scripted = json.loads(capsys.readouterr().out)
    assert (scripted["actors"], scripted["allocator"]) == ("scripted", "heuristic")
    with pytest.raises(SystemExit, match="there is no run 'nowhere' to allocate: name a run folder"):
        run("evaluate", out, "--allocator", "nowhere")
    with pytest.raises(SystemExit, match=r"there is no run 'nowhere' to act: .* choose from random, scripted"):
        run("evaluate", out, "--actors", "nowhere")
    with pytest.raises(SystemExit, match="for each of 2 agents, as in fixed:0,1, not"):
        run("evaluate", out, "--allocator", "fixed:0,1,2,3,4", "--set", "agents=2")

    run("resume", out, "--steps", 3000)
    printed = capsys.readouterr()
    assert "3,072 steps in" in printed.out
    assert "trains 3,072 steps: whole chunks of 1,024" in printed.err
    with pytest.raises(SystemExit, match="exists already"):
        run("train", "save-the-city", "--out", out)
