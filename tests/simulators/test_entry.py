from dataclasses import dataclass, fields

import pytest
from helpers.simulators import PyDoors

import alma
from alma.cli.docstrings import field_docs
from alma.task.registry import option_fields, option_type


@dataclass
class Busy(PyDoors):
    workers: int = 3


class Half(alma.Simulator):
    metrics = ()


def test_a_dataclass_has_its_fields_as_options():
    task = alma.make("helpers.simulators:PyDoors", doors=3, workers=2)
    assert task.spec.subtasks == 3
    assert task.workers == 2
    docs = field_docs(option_type("helpers.simulators:PyDoors"))
    assert docs["agents"] == "How many agents."
    assert docs["workers"].startswith("Worker processes")


def test_other_classes_have_the_keywords_of_their_constructor():
    names = [field.name for field in option_fields("helpers.simulators:PlainDoors")]
    assert names == ["doors", "workers", "time_limit", "simulators"]
    assert alma.make("helpers.simulators:PlainDoors", doors=3).spec.subtasks == 3
    assert alma.make("helpers.simulators:PlainDoors").spec.subtasks == 2


def test_a_class_can_be_registered_as_it_is():
    alma.register("doors-in-python", PyDoors, lambda options: alma.HostTask(PyDoors, vars(options)))
    assert alma.make("doors-in-python", doors=5).spec.subtasks == 5
    assert [field.name for field in fields(PyDoors)][:2] == ["agents", "doors"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("simulators.test_entry:Busy", "`workers` is an option of all simulators: give this one another name"),
        ("simulators.test_entry:Half", "lacks reset, spec, step: a simulator must define them"),
        ("helpers.simulators:TROUBLES", "must be a dataclass that subclasses alma.Task, or subclass alma.Simulator"),
    ],
)
def test_classes_that_will_not_do_are_refused(name, told):
    with pytest.raises(ValueError, match=told):
        alma.make(name)
