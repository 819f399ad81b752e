"""What every command says of itself."""

from dataclasses import is_dataclass
from typing import get_type_hints

import pytest
from helpers.commandline import run

from alma.cli.bench import BenchEnv, BenchTrain
from alma.cli.docstrings import field_docs
from alma.cli.main import COMMANDS
from alma.training.options import TrainingOptions

BENCHES = {"bench env": BenchEnv, "bench train": BenchTrain}


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments, "--help")
    assert not stopped.value.code
    return capsys.readouterr().out


def test_all_commands_are_listed(capsys):
    printed = help_of(capsys)
    assert all(f"• {name} " in printed for name in COMMANDS)
    with pytest.raises(SystemExit):
        run()
    assert capsys.readouterr().out == printed, "without a command too"


@pytest.mark.parametrize("name", [*COMMANDS, *BENCHES])
def test_help_speaks_of_what_can_be_typed(capsys, name):
    printed = help_of(capsys, *name.split())
    assert f"usage: alma {name} " in printed
    for never in ("--no-no-", "{None", "(default: None)", "(default: )"):
        assert never not in printed


@pytest.mark.parametrize("name", [name for name in [*COMMANDS, *BENCHES] if name != "bench"])
def test_every_option_is_explained(name):
    """In a sentence of its own: it is all that somebody sees who looks an option up."""
    kind = {**COMMANDS, **BENCHES}[name]
    docs = field_docs(kind)
    unexplained = [field for field in kind.__dataclass_fields__ if field not in docs and field not in GROUPS]
    assert unexplained == []
    assert all(doc[0].isupper() or doc[0] == "`" for doc in docs.values())
    assert all(doc.endswith((".", "`")) for doc in docs.values())


GROUPS = ("options", "choice")
"""Fields whose own fields are explained."""


def options_of(kind):
    """A dataclass of options, and those within it."""
    yield kind
    for hint in get_type_hints(kind).values():
        if is_dataclass(hint):
            yield from options_of(hint)


@pytest.mark.parametrize("kind", sorted(set(options_of(TrainingOptions)), key=lambda kind: kind.__name__))
def test_every_training_option_is_explained(kind):
    hints = get_type_hints(kind)
    assert [name for name in hints if name not in field_docs(kind) and not is_dataclass(hints[name])] == []
    assert all(doc[0].isupper() and doc.endswith(".") for doc in field_docs(kind).values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sing"], "there is no command 'sing': choose from demo, train, resume, "),
        (["play"], "name a task (see alma play --help)"),
        (
            ["play", "save-the-city", "--actrs", "x"],
            "there is no option --actrs: did you mean --actors? (see alma play",
        ),
        (["resume"], "name a folder (see alma resume --help)"),
        (["evaluate", "--seed", "-1"], "--seed must lie between 0 and 2147483647, not -1 (see alma evaluate --help)"),
        (["reproduce"], "name a figure (see alma reproduce --help)"),
        (["reproduce", "spread", "--no-no-train"], "there is no option --no-no-train: did you mean --no-train?"),
        (["bench"], "say what to measure: alma bench env TASK, or alma bench train TASK (see alma bench --help)"),
        (["bench", "env", "--json=2"], "--json takes no value: write --json alone (see alma bench env --help)"),
        (["methods", "alma"], "'alma' is one argument too many (see alma methods --help)"),
    ],
)
def test_mistakes_name_the_help_of_the_command(arguments, message):
    with pytest.raises(SystemExit) as error:
        run(*arguments)
    assert str(error.value).startswith(f"alma: {message}")
