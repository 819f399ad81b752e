"""The static description of a task: sizes, names of features, relations and actions."""

from dataclasses import dataclass

LARGEST_INTEGER = 2**31 - 1
"""Largest number that compiled programs count to."""


@dataclass(frozen=True)
class TaskSpec:
    """The static description of a task: sizes, and the names of features, relations and actions."""

    name: str
    agents: int
    """A: the most agents there can be."""
    entities: int
    """E: the most entities there can be, agents included."""
    subtasks: int
    """M: the most subtasks there can be."""
    actions: tuple[str, ...]
    """Names of the actions; their number is U."""
    features: tuple[str, ...]
    """Names of the entity features; their number is F."""
    relations: tuple[str, ...]
    """Names of the agent-entity relations; their number is R."""
    max_steps: int
    """Steps after which every episode has ended."""
    mask_subtask_actions: bool
    """Whether actions aimed at an entity of another subtask are unavailable to an agent."""
    max_things: int | None = None
    """The most non-agent entities ("things") of any one subtask, so that networks need not process more; None: any
    number."""
    places: tuple[str, ...] = ()
    """Names of the features that give absolute positions. Networks can do without them: relations give positions
    relative to an agent, which generalise better."""
    max_targets: int | None = None
    """The most available actions of an agent that are aimed at entities of its own subtask, so that networks need not
    process more; None: any number."""

    @property
    def things_per_subtask(self) -> int:
        """The most non-agent entities of any one subtask."""
        things = self.entities - self.agents
        return things if self.max_things is None else min(self.max_things, things)

    def features_seen(self, places: bool) -> tuple[int, ...]:
        """Indices of the entity features that a network sees, with or without absolute positions."""
        return tuple(i for i, name in enumerate(self.features) if places or name not in self.places)

    def __post_init__(self) -> None:
        for name in ("agents", "entities", "subtasks", "max_steps"):
            if not 1 <= getattr(self, name) <= LARGEST_INTEGER:
                raise ValueError(f"TaskSpec.{name} must lie between 1 and {LARGEST_INTEGER}, not {getattr(self, name)}")
        if self.entities < self.agents:
            raise ValueError(
                f"TaskSpec.entities ({self.entities}) counts the agents ({self.agents}) too: it cannot be smaller"
            )
        if not self.actions or not self.features:
            raise ValueError("TaskSpec.actions and TaskSpec.features must name at least one each")
        unknown = [name for name in self.places if name not in self.features]
        if unknown:
            raise ValueError(f"TaskSpec.places must be names of features; {', '.join(unknown)} not in features")
