"""`alma tasks`: the tasks and their options."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from alma.cli.consoles import console
from alma.cli.docstrings import class_doc, field_docs
from alma.task.registry import option_type, task_names


@dataclass(frozen=True)
class Tasks:
    """List the tasks and explain their options."""

    task: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[TASK]")] = None
    """Name of a task, or your own as module:Class. If not given, all tasks that come with alma are explained."""

    def run(self) -> None:
        for name in task_names() if self.task is None else [self.task]:
            options = option_type(name)
            console.print(Text.assemble((name, "bold"), ": ", class_doc(options)))
            console.print(option_table(options), "")


def option_table(options: type) -> Table:
    """The options of a task: how to write them, with their defaults, and what they mean."""
    docs = field_docs(options)
    table = Table(show_header=False, box=None, padding=(0, 2))
    for field in dataclasses.fields(options):
        # As texts, since rich would take brackets in strings for markup.
        table.add_row(Text(f"{field.name}={as_setting(default_of(field))}"), Text(docs.get(field.name, "")))
    return table


def default_of(field: dataclasses.Field) -> Any:
    """The default of an option; None if there is none."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def as_setting(value: Any) -> str:
    """A value as it is written after `--set NAME=`; empty for None."""
    if isinstance(value, tuple):
        return ",".join(map(as_setting, value))
    return "" if value is None else str(value)
