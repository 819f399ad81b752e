"""`alma methods`: the methods that can be trained."""

from dataclasses import dataclass

from rich.table import Table

from alma.cli.consoles import console
from alma.training.methods import METHODS


@dataclass(frozen=True)
class Methods:
    """List the methods that can be trained."""

    def run(self) -> None:
        table = Table(show_header=False, box=None)
        for name, method in METHODS.items():
            table.add_row(name, method.summary)
        console.print(table)
