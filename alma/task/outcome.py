"""What one step of a task brought."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
from jaxtyping import Array, Bool, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """What one step brought."""

    reward: Float[Array, ""]
    """The global reward."""
    subtask_rewards: Float[Array, "M"]
    """Zero for subtasks that were not active before the step."""
    terminated: Bool[Array, ""]
    """The episode is really over: there is no value beyond."""
    truncated: Bool[Array, ""]
    """The episode was only cut off by a time limit: bootstrap through it. Never together with `terminated`."""
    finished: Bool[Array, "M"]
    """Subtasks that are finished by now, well or badly; once finished, always finished."""
    success: Bool[Array, ""]
    """The episode ended in success with this step."""
    metrics: Mapping[str, Float[Array, ""]]
    """Figures worth logging; each adds up over an episode."""

    @property
    def done(self) -> Bool[Array, "*batch"]:
        return self.terminated | self.truncated
