"""The command line, as if typed."""

from alma.cli.main import main


def run(*arguments: object) -> None:
    main([str(argument) for argument in arguments])
