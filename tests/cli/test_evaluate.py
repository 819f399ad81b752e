"""`alma evaluate`, and what else a user does with a run: `alma train`, `alma resume`."""

import json

import pytest
from helpers.commandline import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "doors"
    run("train", "helpers.doors:Doors", "--preset", "tiny", "--steps", 1024, "--out", out)
    return out


def test_a_run_says_what_can_be_done_with_it(trained, capsys):
    """A finished one refuses to be trained before it says that it is being trained."""
    with pytest.raises(SystemExit, match=rf"is finished: train for longer with: alma resume {trained} --steps N"):
        run("resume", trained, "--trust")
    assert "training" not in capsys.readouterr().err


@pytest.fixture
def evaluate(trained, capsys):
    def evaluate(*arguments):
        capsys.readouterr()
        run("evaluate", trained, "--trust", "--episodes", 8, "--json", *arguments)
        return json.loads(capsys.readouterr().out)

    return evaluate


def test_results_are_printed_as_one_json_object(evaluate):
    result = evaluate("--set", "limit=1")
    assert (result["task"], result["method"], result["episodes"]) == ("helpers.doors:Doors", "alma", 8)
    assert result["task_options"] == {"limit": 1}
    assert result["mean_length"] == 1
    assert 0 <= result["switches_per_step"] <= 1
    assert "unattended_subtasks" in result
    assert set(result["by_team_size"]) == {"2"}


def test_others_can_act_and_allocate(evaluate, trained):
    result = evaluate("--actors", trained, "--allocator", "search")
    assert (result["actors"], result["allocator"]) == (str(trained), "search")
    result = evaluate("--actors", "scripted", "--allocator", "heuristic")
    assert (result["actors"], result["allocator"]) == ("scripted", "heuristic")
    assert result["success_rate"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--allocator", "nowhere"), "there is no run 'nowhere' to allocate: name a run folder"),
        (("--actors", "nowhere"), r"there is no run 'nowhere' to act: .* choose from random, scripted"),
        (("--allocator", "fixed:0,1,1"), "for each of 2 agents, as in fixed:0,1, not"),
    ],
)
def test_what_is_not_there_cannot_play(evaluate, arguments, message):
    with pytest.raises(SystemExit, match=message):
        evaluate(*arguments)


def test_a_run_can_be_resumed_for_longer(trained, capsys):
    run("resume", trained, "--trust", "--steps", 1500)
    printed = capsys.readouterr()
    assert "2,048 steps in" in printed.out
    assert "trains 2,048 steps: whole chunks of 1,024" in printed.err
    assert f"alma evaluate {trained} --trust" in printed.out
    assert f"alma watch {trained} --trust" in printed.out
