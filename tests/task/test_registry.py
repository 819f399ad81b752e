from dataclasses import dataclass

import pytest

import alma
from alma.task import registry
from alma.tasks.save_the_city import Rules, SaveTheCity


def test_options_reach_the_task():
    assert alma.make("save-the-city", agents=(3, 7), max_steps=20).spec.agents == 7


def test_unknown_names_are_answered_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"unknown task 'save-city': choose from .*save-the-city"):
        alma.make("save-city")


def test_unknown_options_are_answered_with_the_valid_ones():
    with pytest.raises(ValueError, match="no option team: choose from agents, grid_size"):
        alma.make("save-the-city", team=3)


OWN_TASK = """
from dataclasses import dataclass
from alma.tasks.save_the_city import Rules, SaveTheCity

@dataclass(frozen=True)
class Small(SaveTheCity):
    rules: Rules = Rules(agents=2)
"""


def test_own_tasks_can_be_named_by_module(monkeypatch, tmp_path):
    (tmp_path / "my_city.py").write_text(OWN_TASK)
    monkeypatch.chdir(tmp_path)
    assert alma.make("my_city:Small").spec.agents == 2
    with pytest.raises(ValueError, match="cannot import the task 'my_city:Large'"):
        alma.make("my_city:Large")
    with pytest.raises(ValueError, match="cannot import the task 'nowhere:Small'"):
        alma.make("nowhere:Small")
    with pytest.raises(ValueError, match="must be a dataclass that subclasses"):
        alma.make("my_city:dataclass")


def test_own_tasks_can_be_registered(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))

    @dataclass(frozen=True)
    class Options:
        size: int = 3

    alma.register("mine", Options, lambda options: SaveTheCity(Rules(agents=options.size)))
    assert alma.make("mine", size=4).spec.agents == 4
    assert "mine" in alma.task_names()
    with pytest.raises(ValueError, match="exists already"):
        alma.register("mine", Options, list)
    with pytest.raises(ValueError, match="must be a dataclass"):
        alma.register("other", dict, list)
