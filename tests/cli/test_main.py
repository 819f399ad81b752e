"""The command line as a whole: what becomes of mistakes."""

import sys
from importlib import metadata
from subprocess import PIPE, Popen

import pytest
from helpers.commandline import run

from alma.cli import main as cli


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["play", "chess"], "unknown task 'chess': choose from save-the-city"),
        (["play", "save-the-city", "--set", "agents"], "write options as name=value, not 'agents'"),
        (["play", "save-the-city", "--set", "agents=many"], "agents must be a team size"),
        (["play", "save-the-city", "--set", "size=3"], "no option size"),
        (["play", "save-the-city", "--actors", "clever"], "unknown actors"),
        (["play", "save-the-city", "--allocation", "fair"], "unknown allocator"),
        (["play", "save-the-city", "--out", "x.avi"], "its ending must be one of .gif, .mp4, .png"),
        (["play", "save-the-city", "--episodes", "0"], "--episodes must lie between 1 and"),
        (["play", "save-the-city", "--period", "0"], "--period must be at least 1"),
        (["play", "save-the-city", "--seed", "99999999999999999999"], "seed must lie between 0 and"),
        (["play", "save-the-city", "--set", "start_on_fire=lots"], "finite numbers"),
        (["play", "save-the-city", "--out", "/proc/nowhere/episode.gif"], "nowhere"),
        (["train"], "name a task, for example: alma train save-the-city"),
        (["train", "chess"], "unknown task"),
        (["train", "save-the-city", "--method", "magic"], "unknown method 'magic': choose from alma"),
        (["train", "save-the-city", "--method", "heuristic:magic"], "no heuristic 'magic'"),
        (["train", "save-the-city", "--seeds", "3..1"], "write seeds as"),
        (["train", "save-the-city", "--seed", "-1"], "seed must lie between"),
        (["train", "save-the-city", "--seeds", "0..99999999999"], "--seeds must be at most 10000"),
        (["train", "save-the-city", "--seed", "1", "--seeds", "0..1"], "give either --seed or --seeds, not both"),
        (["train", "save-the-city", "--collection.buffer", "100000000000"], "--collection.buffer must be at most 2147"),
        (["train", "--", "save-the-city", "--steps", "2048"], "leave out --"),
        (["evaluate", "nowhere", "--episodes", "100000000000"], "--episodes must lie between 1 and 10000000"),
        (["check", "save-the-city", "--episodes", "100000"], "--episodes must lie between 1 and 1000"),
        (["resume", "nowhere"], "is not a run folder"),
        (["train", "--resume", "nowhere"], "is not a run folder"),
        (["evaluate", "nowhere"], "no such file"),
        (["watch", "nowhere"], "no such file"),
        (["watch", "nowhere", "--out", "replay.pdf"], "its ending must be one of .html, .gif, .mp4, .png"),
        (["watch", "nowhere", "--seed", "-1"], "seed must lie between"),
        (["evaluate", "pretrained:nothing"], "no pretrained weights 'nothing': choose from"),
        (["reproduce", "figure-3"], "unknown figure 'figure-3': choose from save-the-city"),
        (["reproduce", "spread", "--methods", "copa"], "no methods copa in spread: choose from alma, flat"),
        (["reproduce", "spread", "--seeds", "few"], "write seeds as"),
        (["reproduce", "spread", "--jobs", "0", "--dry-run"], "--jobs must be at least 1"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message):
    with pytest.raises(SystemExit) as error:
        run(*arguments)
    assert str(error.value).startswith("alma: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--version")
    assert not stopped.value.code
    assert capsys.readouterr().out == f"alma {metadata.version('alma-marl')}\n"


def test_ctrl_c_is_no_crash(monkeypatch):
    def interrupted(command):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.Tasks, "run", interrupted)
    with pytest.raises(SystemExit) as stopped:
        run("tasks")
    assert stopped.value.code == 130


SAYS_ONE_THING = (
    "from alma.cli import main as cli; cli.Tasks.run = lambda tasks: print('something'); cli.run(['tasks'])"
)


def test_output_that_nobody_reads_is_no_mistake():
    with Popen([sys.executable, "-c", SAYS_ONE_THING], stdout=PIPE, stderr=PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        told = command.stderr.read()
    assert command.returncode == 1
    assert not told


def test_names_from_files_do_nothing_to_the_terminal(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('{"preset": "\\u001b[2J\\u0007"}')
    with pytest.raises(SystemExit) as error:
        run("train", "save-the-city", "--preset", file)
    assert "\\x1b[2J" in str(error.value)
    assert str(error.value).isprintable()
