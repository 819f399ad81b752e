import json

import pytest

from alma.cli import main


def run(*arguments):
    main([str(argument) for argument in arguments])


def test_play_prints_one_json_object(capsys):
    run("play", "save-the-city", "--episodes", 12, "--json", "--set", "agents=2,3", "--set", "max_steps=20")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 12
    assert 0 <= result["interval"][0] <= result["success_rate"] <= result["interval"][1] <= 1
    assert set(result["by_team_size"]) <= {"2", "3"}
    assert sum(row["episodes"] for row in result["by_team_size"].values()) == 12


def test_play_prints_a_table_and_draws(capsys, tmp_path):
    out = tmp_path / "new" / "episode.gif"
    run("play", "save-the-city", "--set", "max_steps=5", "--out", out)
    assert "solved" in capsys.readouterr().out
    assert out.stat().st_size > 0


def test_demo(capsys, tmp_path):
    run("demo", "--episodes", 4, "--out", tmp_path / "demo.gif")
    printed = capsys.readouterr()
    assert "solved" in printed.out
    assert "demo.gif" in printed.err.replace("\n", "")


def test_tasks_are_listed_with_their_options(capsys):
    run("tasks")
    printed = capsys.readouterr().out
    assert "save-the-city" in printed
    assert "fire_growth" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["play", "chess"], "unknown task 'chess': choose from save-the-city"),
        (["play", "save-the-city", "--set", "agents"], "write options as name=value, not 'agents'"),
        (["play", "save-the-city", "--set", "agents=many"], "agents must be a team size"),
        (["play", "save-the-city", "--set", "size=3"], "no option size"),
        (["play", "save-the-city", "--policy", "clever"], "unknown policy"),
        (["play", "save-the-city", "--allocation", "fair"], "unknown allocation"),
        (["play", "save-the-city", "--out", "x.avi"], "its ending must be one of .gif, .mp4, .png"),
        (["play", "save-the-city", "--episodes", "0"], "episodes must be at least 1"),
        (["play", "save-the-city", "--period", "0"], "at least 1 step"),
        (["play", "save-the-city", "--seed", "99999999999999999999"], "a seed must lie between 0 and"),
        (["play", "save-the-city", "--set", "start_on_fire=lots"], "finite numbers"),
        (["play", "save-the-city", "--out", "/proc/nowhere/episode.gif"], "nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message):
    with pytest.raises(SystemExit) as error:
        run(*arguments)
    assert str(error.value).startswith("alma: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
