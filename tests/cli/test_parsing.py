"""How arguments become commands."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
import tyro

from alma.cli.docstrings import class_doc, field_docs
from alma.cli.mirrors import FLAT, mirror_type
from alma.cli.parsing import build, flags, parse, read


@dataclass(frozen=True)
class Wheels:
    """What it rolls on."""

    count: int = 4
    """How many,
    all in all."""
    spare: bool = False
    """Whether there is one more."""

    def __post_init__(self):
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")


@dataclass(frozen=True)
class Paint:
    coats: int
    """How many layers."""
    colour: Literal["red", "blue"] | None = None
    """What colour."""


@dataclass(frozen=True)
class Build:
    """Build a car."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """What it is called."""
    owner: str | None = None
    """Whose it is."""
    weight: float = 1.0
    """How heavy it is."""
    wheels: Wheels = field(default_factory=Wheels)
    paint: Annotated[Paint, FLAT] = Paint(2)

    def __post_init__(self):
        if self.weight <= 0:
            raise ValueError(f"weight must be positive, not {self.weight}")
        if self.owner is not None and self.paint.colour is None:
            raise ValueError("owned cars have a colour")


@dataclass(frozen=True)
class BuildTwo(Build):
    owner: str | None = None
    """Whose they are."""
    other: str = ""
    """What the other one is called."""


def test_arguments_in_any_order_make_a_command():
    expected = Build("beetle", "me", 1.0, Wheels(3, spare=True), Paint(2, "red"))
    assert (
        read(Build, ["--colour", "red", "--wheels.spare", "--wheels.count=3", "beetle", "--owner", "me"], "")
        == expected
    )
    assert (
        read(Build, ["--owner=me", "beetle", "--wheels.count", "3", "--colour", "red", "--wheels.spare"], "")
        == expected
    )


def test_values_are_judged_when_all_are_known():
    found, unknown = parse(Build, ["--owner", "me", "--wheels.count", "0"], "car build")
    assert (found.owner, found.wheels.count, unknown) == ("me", 0, [])
    assert dataclasses.asdict(found.paint) == {"coats": 2, "colour": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["beetle", "--wheels.count", "0"], "--wheels.count must be at least 1, not 0 (see car build --help)"),
        (
            ["beetle", "--wheels.count", "four"],
            "--wheels.count must be a whole number, not 'four' (see car build --help)",
        ),
        (["--wheels.count=1.5"], "--wheels.count must be a whole number, not '1.5' (see car build --help)"),
        (["--colour", "green"], "--colour must be one of red, blue, not 'green' (see car build --help)"),
        (["--colour"], "--colour needs a value: one of red, blue (see car build --help)"),
        (["--owner", "--coats", "3"], "--owner needs a value (see car build --help)"),
        (["beetle", "--weight=heavy"], "--weight must be a number, not 'heavy' (see car build --help)"),
        (["beetle", "--weight", "-2"], "--weight must be positive, not -2.0 (see car build --help)"),
        (["beetle", "--owner", "me"], "owned cars have a colour (see car build --help)"),
        ([], "name a name (see car build --help)"),
        (["beetle", "bug"], "'bug' is one argument too many (see car build --help)"),
        (["--bogus", "beetle"], "there is no option --bogus (see car build --help)"),
        (["--weels.count=3"], "there is no option --weels.count: did you mean --wheels.count? (see car build --help)"),
        (["beetle", "--spare"], "there is no option --spare: did you mean --wheels.spare? (see car build --help)"),
    ],
)
def test_complaints_name_the_help(arguments, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the whole message is compared
        read(Build, arguments, "car build")
    assert str(error.value) == message


def test_flags_may_start_from_other_values():
    defaults = {"wheels": Wheels(6)}
    assert read(Build, ["bus"], "car build", defaults).wheels == Wheels(6)
    assert read(Build, ["bus", "--wheels.spare"], "car build", defaults).wheels == Wheels(6, spare=True)


def test_all_flags_are_known():
    assert [flag.name for flag in flags(Build)] == [
        "--owner",
        "--weight",
        "--wheels.count",
        "--wheels.spare",
        "--coats",
        "--colour",
    ]


def help_of(capsys, hidden=frozenset()):
    with pytest.raises(SystemExit) as stopped:
        parse(Build, ["--help"], "car build", {"wheels": Wheels(6)}, hidden)
    assert not stopped.value.code
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_help_is_made_of_docstrings_and_defaults(capsys):
    shown = help_of(capsys)
    assert "NAME What it is called. (required)" in shown
    assert "How many, all in all. (default: 6)" in shown
    assert "--owner STR Whose it is. " in shown, "without a default, and without None to choose"
    assert "What it rolls on." in shown
    assert "How many layers. (default: 2)" in shown


@pytest.mark.parametrize("hidden", [{"wheels.spare"}, {"wheels", "paint.colour"}])
def test_hidden_flags_are_not_in_the_help(capsys, hidden):
    shown = help_of(capsys, frozenset(hidden))
    assert "spare" not in shown
    assert ("wheels" in shown) == ("wheels" not in hidden)
    assert ("colour" in shown) == ("wheels" not in hidden)
    assert "--owner" in shown


def test_a_mirror_can_be_built_again():
    value = mirror_type(Build)(name="beetle", wheels=mirror_type(Wheels)(count=2))
    assert build(value) == Build("beetle", wheels=Wheels(2))


def test_docstrings_of_fields_are_found():
    assert field_docs(Wheels) == {"count": "How many, all in all.", "spare": "Whether there is one more."}
    assert field_docs(BuildTwo) == {
        "name": "What it is called.",
        "owner": "Whose they are.",
        "weight": "How heavy it is.",
        "other": "What the other one is called.",
    }
    assert field_docs(dataclasses.make_dataclass("Sourceless", ["a"])) == {}
    assert field_docs(dataclasses.make_dataclass("Nowhere", ["a"], namespace={"__module__": "of_no_file"})) == {}


def test_docstrings_of_classes_are_those_that_somebody_wrote():
    assert class_doc(Wheels) == "What it rolls on."
    assert class_doc(Paint) == ""
