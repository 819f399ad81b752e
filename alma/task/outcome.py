"""The outcome of one step of a task."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
from jaxtyping import Array, Bool, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Outcome:
    """The outcome of one step: rewards, and whether subtasks or the episode are over."""

    reward: Float[Array, ""]
    """The global reward."""
    subtask_rewards: Float[Array, "M"]
    """The reward of each subtask; zero for subtasks that were not active before the step."""
    terminated: Bool[Array, ""]
    """The episode is over, and the next state has no value."""
    truncated: Bool[Array, ""]
    """The episode was only cut off by a time limit: bootstrap from the next state. Never together with `terminated`."""
    finished: Bool[Array, "M"]
    """Subtasks that are finished by now, successfully or not; once finished, they stay finished."""
    success: Bool[Array, ""]
    """The episode ended in success with this step."""
    metrics: Mapping[str, Float[Array, ""]]
    """Numbers worth logging, by name; each is summed over an episode."""

    @property
    def done(self) -> Bool[Array, "*batch"]:
        return self.terminated | self.truncated
