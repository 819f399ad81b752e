"""Multi-agent learning for composite tasks: an allocator gives every agent a subtask, actors work on theirs.

The public names are the ones below; everything else may change between versions.
"""

from alma.runs import runtime

runtime.configure()  # before anything is compiled

import alma.tasks  # noqa: E402, F401  # registers the tasks that come with the package
from alma.runs.policy import Policy, load  # noqa: E402
from alma.task.check import TaskError, check_task  # noqa: E402
from alma.task.outcome import Outcome  # noqa: E402
from alma.task.registry import make, register, task_names  # noqa: E402
from alma.task.spec import TaskSpec  # noqa: E402
from alma.task.task import Task  # noqa: E402
from alma.task.view import NOBODY, View  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "NOBODY",
    "Outcome",
    "Policy",
    "Task",
    "TaskError",
    "TaskSpec",
    "View",
    "check_task",
    "load",
    "make",
    "register",
    "task_names",
]
