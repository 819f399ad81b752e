"""Multi-agent reinforcement learning for composite tasks: an allocator gives every agent a subtask to act on.

The public names are those in `__all__`; everything else may change between versions. Importing the package changes no
settings of the process; `alma.train` and the command line do so by calling `alma.configure`.
"""

import alma.cli.starting  # first, since Ctrl-C is answered from then on
import alma.tasks  # noqa: F401  # registers the tasks that come with the package
from alma.actors.actors import Actors
from alma.actors.scope import Flat, Labelled, Masked, Scope
from alma.allocators.learned import LearnedAllocator
from alma.allocators.rules import RuleAllocator
from alma.api import evaluate, resume, train, watch
from alma.play.situation import Situation
from alma.play.summary import Results
from alma.reproduce.comparing import Comparison, compare
from alma.runs.policy import Policy, load
from alma.runs.progress import Progress
from alma.runs.runtime import configure
from alma.simulators.host_task import HostTask
from alma.task.check import TaskError, check_task
from alma.task.outcome import Outcome
from alma.task.registry import make, register, task_names
from alma.task.scene import Line, Marker, Place, Scene
from alma.task.simulator import Simulator, SimulatorError
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import NOBODY, View, available_under
from alma.training.methods import Method, learned_allocator, no_allocator, rule_allocator
from alma.training.options import TrainingOptions
from alma.training.presets import preset

__version__ = "0.2.0"

__all__ = [
    "NOBODY",
    "Actors",
    "Comparison",
    "Flat",
    "HostTask",
    "Labelled",
    "LearnedAllocator",
    "Line",
    "Marker",
    "Masked",
    "Method",
    "Outcome",
    "Place",
    "Policy",
    "Progress",
    "Results",
    "RuleAllocator",
    "Scene",
    "Scope",
    "Simulator",
    "SimulatorError",
    "Situation",
    "Task",
    "TaskError",
    "TaskSpec",
    "TrainingOptions",
    "View",
    "available_under",
    "check_task",
    "compare",
    "configure",
    "evaluate",
    "learned_allocator",
    "load",
    "make",
    "no_allocator",
    "preset",
    "register",
    "resume",
    "rule_allocator",
    "task_names",
    "train",
    "watch",
]
