"""`alma methods` and `alma tasks`: what there is to choose from."""

from dataclasses import dataclass

from rich.table import Table

from alma.cli.showing import console
from alma.task.registry import option_fields, task_names
from alma.training.methods import METHODS


@dataclass(frozen=True)
class Methods:
    """List the methods that can be trained."""

    def run(self) -> None:
        table = Table(show_header=False, box=None)
        for name, method in METHODS.items():
            table.add_row(name, method.summary)
        console.print(table)


@dataclass(frozen=True)
class Tasks:
    """List the tasks and their options."""

    def run(self) -> None:
        for name in task_names():
            table = Table(title=name, title_justify="left", show_header=False, box=None)
            for field in option_fields(name):
                table.add_row(field.name, str(field.default))
            console.print(table)
