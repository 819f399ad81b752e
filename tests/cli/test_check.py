"""Tasks of one's own: what is wrong with them is told in one message, with file and line, before a run begins."""

import sys
from pathlib import Path

import pytest
from helpers.commandline import run

DOORS = (Path(__file__).parents[1] / "helpers" / "doors.py").read_text()


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a module `mine` into the working directory, made from the task of doors by replacing text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    def write(*replaced):
        text = DOORS
        for before, after in replaced:
            assert before in text
            text = text.replace(before, after)
        Path("mine.py").write_text(text)
        return next(number for number, line in enumerate(text.splitlines(), 1) if "BROKEN" in line) if replaced else 0

    yield write
    sys.modules.pop("mine", None)


def failure(*arguments):
    with pytest.raises(SystemExit) as error:
        run(*arguments)
    return str(error.value)


def test_a_task_that_keeps_its_contract(write, capsys):
    write()
    run("check", "mine:Doors", "--episodes", 2)
    assert "mine:Doors keeps the contract of tasks, in 2 episodes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "where", "what"),
    [
        ("limit: int = 2", "limit: int = = 2  # BROKEN", "", "SyntaxError: invalid syntax"),
        ("import jax\n", "import jax\nraise SystemExit('usage: mine')  # BROKEN\n", "", "SystemExit: usage: mine"),
        ("limit: int = 2", "limit: int = TWO  # BROKEN", ", in Doors", "NameError: name 'TWO' is not defined"),
        ("import jax\n", "import jax\nimport torchy  # BROKEN\n", "", "No module named 'torchy'"),
        ("    return TaskSpec(", "    {}['a']  # BROKEN\n        return TaskSpec(", ", in spec", "KeyError: 'a'"),
        ("TaskSpec(\n            name=", "TaskSpec(  # BROKEN\n            title=", ", in spec", "TypeError: "),
        ("    doors = jnp.arange(2)\n", "    doors = {}['bar']  # BROKEN\n", ", in step", "KeyError: 'bar'"),
        ("    done = jnp", "    if newly[0]: pass  # BROKEN\n        done = jnp", ", in step", "no Python decisions"),
    ],
)
@pytest.mark.parametrize("command", ["check", "train"])
def test_errors_are_told_with_file_and_line(write, command, before, after, where, what):
    line = write((before, after))
    told = failure(command, "mine:Doors")
    assert f"mine.py, line {line}{where}: " in told
    assert what in told
    assert "\n" not in told
    assert not Path("runs").exists()


def test_a_traceback_can_be_asked_for(write):
    write(("        return TaskSpec(", "        {}['size']  # BROKEN\n        return TaskSpec("))
    with pytest.raises(KeyError):
        run("check", "mine:Doors", "--traceback")


@pytest.mark.parametrize(
    ("before", "after", "breach"),
    [
        ("return TaskSpec(", "TaskSpec(  # BROKEN", "spec must be a TaskSpec, not a NoneType"),
        ("present=jnp.ones(4, bool)", "present=jnp.ones(3, bool)  # BROKEN\n", "View.present must be bool of shape"),
        ("reward=jnp.sum(newly)", "reward=0 / jnp.zeros(()) # BROKEN\n + jnp.sum(newly)", "- rewards must be finite"),
        ("def view(", "def viewed(  # BROKEN\n", "must implement view: see alma.Task"),
        ("limit: int = 2", "limit: int  # BROKEN", "needs the option limit: write --set limit=VALUE"),
    ],
)
def test_breaches_are_listed_before_training(write, before, after, breach):
    write((before, after))
    assert breach in failure("train", "mine:Doors", "--preset", "tiny")
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine:Dors", "mine.py: did you mean Doors?"),
        ("sub/mine.py:Doors", "write the module as Python imports it from this folder: sub.mine"),
        ("../sub/mine.py:Doors", "change to the module's folder, and write mine:NAME"),
        ("theirs:Doors", "there is no module 'theirs' in"),
        ("types:Doors", "types.py"),
    ],
)
def test_names_that_lead_nowhere(write, name, message):
    write()
    told = failure("check", name)
    assert f"cannot import the task {name!r}: " in told
    assert message in told


def test_where_a_task_does_not_fit_later_on_the_check_is_named(write):
    write(("return TaskSpec(", "TaskSpec(  # BROKEN"))
    assert "`alma check mine:Doors` tells" in failure("play", "mine:Doors")
