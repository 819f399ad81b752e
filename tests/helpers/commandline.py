"""Runs the command line in this process."""

from alma.cli.main import run as run_command


def run(*arguments: object) -> None:
    run_command([str(argument) for argument in arguments])
