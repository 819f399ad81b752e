"""Multi-agent learning for composite tasks: an allocator gives every agent a subtask, actors work on theirs.

The public names are the ones below; everything else may change between versions.
"""

from alma import runtime

runtime.configure()  # before anything is compiled

from alma.check import TaskError, check_task  # noqa: E402
from alma.policy import LearnedPolicy, load  # noqa: E402
from alma.registry import make, register, task_names  # noqa: E402
from alma.task import NOBODY, Outcome, Task, TaskSpec, View  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "NOBODY",
    "LearnedPolicy",
    "Outcome",
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
