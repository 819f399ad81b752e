"""`alma methods` and `alma tasks`."""

from helpers.commandline import run

from alma.training.methods import METHODS


def test_methods_are_listed(capsys):
    run("methods")
    printed = capsys.readouterr().out
    assert all(name in printed for name in METHODS)


def test_tasks_are_listed_with_their_options(capsys):
    run("tasks")
    printed = capsys.readouterr().out
    assert "save-the-city" in printed
    assert "fire_growth" in printed
