"""Simulators in plain Python as tasks: many copies in worker processes, stepped from within compiled programs.

Users write an `alma.Simulator`; `HostTask` makes a task of it. Its copies live in worker processes, each on a *seat*,
which is also a row of the memory that all processes share. The pool in the main process hands out seats to episodes.
"""

from alma.simulators.entry import entry_of
from alma.task.registry import adapt
from alma.task.simulator import Simulator

adapt(Simulator, entry_of)
