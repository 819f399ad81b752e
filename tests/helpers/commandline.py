"""Runs the command line in this process."""

from alma.cli.main import main


def run(*arguments: object) -> None:
    main([str(argument) for argument in arguments])
