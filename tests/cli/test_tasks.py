"""`alma methods` and `alma tasks`."""

from dataclasses import dataclass, field, fields

import pytest
from helpers.commandline import run

from alma.cli import methods, tasks
from alma.cli.arguments import parse_setting
from alma.cli.consoles import make_console
from alma.cli.docstrings import field_docs
from alma.cli.tasks import as_setting, option_table
from alma.task.registry import make, option_type, task_names
from alma.training.methods import METHODS


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    for module in (methods, tasks):
        monkeypatch.setattr(module, "console", make_console())


def test_methods_are_listed(capsys):
    run("methods")
    printed = capsys.readouterr().out
    assert all(name in printed for name in METHODS)


def test_tasks_are_listed_with_their_options(capsys):
    run("tasks")
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("save-the-city: ") for line in lines)
    (agents,) = [line for line in lines if line.strip().startswith("agents=2,5 ")]
    assert agents.strip().endswith(field_docs(option_type("save-the-city"))["agents"]), "on one line: no terminal"


def test_one_task_is_explained(capsys):
    run("tasks", "starcraft")
    printed = capsys.readouterr().out
    assert "units=sz " in printed
    assert "grid_size" not in printed
    run("tasks", "helpers.doors:Doors")
    assert "helpers.doors:Doors: " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="unknown task 'chess'"):
        run("tasks", "chess")


@pytest.mark.parametrize("name", task_names())
def test_every_option_of_a_task_is_explained(name):
    docs = field_docs(option_type(name))
    assert [field.name for field in fields(option_type(name)) if field.name not in docs] == []
    assert all(doc[0].isupper() or doc[0].isdigit() for doc in docs.values())


@pytest.mark.parametrize("name", task_names())
def test_defaults_are_shown_as_they_are_written(name):
    written = {field.name: as_setting(field.default) for field in fields(option_type(name))}
    settings = [parse_setting(f"{option}={text}") for option, text in written.items() if text]
    assert make(name, **dict(settings)) == make(name)


@dataclass(frozen=True)
class Options:
    """Options with everything that is hard to show."""

    plain: int
    """From [low] to [high]."""
    made: tuple[int, ...] = field(default_factory=lambda: (1, 2))
    bare: float | None = None


def test_options_of_ones_own_are_shown_whatever_they_are(capsys):
    tasks.console.print(option_table(Options))
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown == [["plain=", "From", "[low]", "to", "[high]."], ["made=1,2"], ["bare="]]
