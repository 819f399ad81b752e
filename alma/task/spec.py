"""The static facts of a task: its sizes, and names of what its arrays hold."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskSpec:
    """The static facts of a task: sizes, and what the numbers mean."""

    name: str
    agents: int
    entities: int
    subtasks: int
    actions: tuple[str, ...]
    """Names of the actions; their number is U."""
    features: tuple[str, ...]
    """Names of the entity features; their number is F."""
    relations: tuple[str, ...]
    """Names of the agent-entity relations; their number is R."""
    max_steps: int
    mask_subtask_actions: bool
    """Whether actions aimed at an entity of another subtask are unavailable to an agent."""
    max_things: int | None = None
    """The most non-agent entities that one subtask can have, so that networks look no further; None: all."""
    places: tuple[str, ...] = ()
    """Features that tell where on the map an entity is. Relations tell where it is from an agent, which generalises
    better, so that networks can do without."""

    @property
    def things_per_subtask(self) -> int:
        things = self.entities - self.agents
        return things if self.max_things is None else min(self.max_things, things)

    def features_seen(self, places: bool) -> tuple[int, ...]:
        """The indices of the features that a network looks at, with or without places."""
        return tuple(i for i, name in enumerate(self.features) if places or name not in self.places)

    def __post_init__(self) -> None:
        for name in ("agents", "entities", "subtasks", "max_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"TaskSpec.{name} must be at least 1, not {getattr(self, name)}")
        if self.entities < self.agents:
            raise ValueError(
                f"TaskSpec.entities ({self.entities}) counts the agents ({self.agents}) too: it cannot be smaller"
            )
        if not self.actions or not self.features:
            raise ValueError("TaskSpec.actions and TaskSpec.features must name at least one each")
        unknown = [name for name in self.places if name not in self.features]
        if unknown:
            raise ValueError(f"TaskSpec.places must be names of features; {', '.join(unknown)} are none")
