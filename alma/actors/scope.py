"""What an allocation means to actors: what they see, which values they learn, and from which rewards.

Masked, labelled and flat actors use the same networks; they differ in the masks and inputs computed here.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.nn.masks import all_present, allocation_matrix, same_subtask
from alma.task.outcome import Outcome
from alma.task.spec import TaskSpec
from alma.task.view import View, available_under, subtask_of_entities


class Sight(NamedTuple):
    """The inputs of the actors' networks in a situation. K values are learned."""

    view: View
    utility_mask: Bool[Array, "*b A E"]
    """Attention mask of utilities: entities in an agent's scope that are visible to it."""
    mixer_mask: Bool[Array, "*b A E"]
    """Attention mask of mixers and coaches: entities in an agent's scope, visible or not, since these networks see the
    whole state."""
    members: Float[Array, "*b A K"]
    """1 for the agents that contribute to each value."""


@runtime_checkable
class Scope(Protocol):
    """What actors see under an allocation, and which K values they learn."""

    @property
    def things(self) -> int | None:
        """The most non-agent entities that an agent can attend to; None: all."""

    @property
    def targets(self) -> int | None:
        """The most available actions of an agent that are aimed at entities it can attend to; None: any number."""

    @property
    def knows_subtasks(self) -> bool:
        """Whether actors use the allocation; False for flat actors."""

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        """The inputs of the networks."""

    def active(self, view: View) -> Bool[Array, "*b K"]:
        """Mask of the values that have not ended: those of active subtasks, or the one of the whole task."""

    def rewards(self, outcome: Outcome) -> Float[Array, "*b K"]:
        """The reward from which each value is learned."""

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        """Actions that may be taken."""


@dataclass(frozen=True)
class Masked:
    """ALMA's scope: agents see only the entities of their own subtask, and learn its value from its reward."""

    spec: TaskSpec

    @property
    def things(self) -> int | None:
        return self.spec.max_things

    @property
    def targets(self) -> int | None:
        return self.spec.max_targets

    @property
    def knows_subtasks(self) -> bool:
        return True

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        in_scope = same_subtask(view, allocation)
        return Sight(view, in_scope & view.visible, in_scope, self.members(view, allocation))

    def members(self, view: View, allocation: Int[Array, "*b A"]) -> Float[Array, "*b A M"]:
        """Present agents, one-hot over the subtasks they are allocated to."""
        present = view.present[..., : allocation.shape[-1], None]
        return allocation_matrix(allocation, view.active.shape[-1]) * present

    def active(self, view: View) -> Bool[Array, "*b M"]:
        return view.active

    def rewards(self, outcome: Outcome) -> Float[Array, "*b M"]:
        return outcome.subtask_rewards

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        """Available actions; without those aimed at other subtasks if the task has `mask_subtask_actions`."""
        return available_under(view, allocation) if self.spec.mask_subtask_actions else view.available


@dataclass(frozen=True)
class Labelled(Masked):
    """The ablation without masks: agents see everything, with each entity labelled with its subtask.

    Labels are one-hot features, which the first linear layer turns into embeddings. The subtasks are randomly permuted
    at each call, so that their indices carry no meaning. There are as many labels as subtasks in training: where a
    larger task has more subtasks, some of them share a label.
    """

    @property
    def things(self) -> int | None:
        return None

    @property
    def targets(self) -> int | None:
        return None

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        labels = self.spec.subtasks
        subtask = subtask_of_entities(view, allocation)
        if view.active.shape[-1] > labels:
            subtask = jnp.where(subtask >= 0, subtask % labels, subtask)
        order = jax.random.permutation(key, labels)
        one_hot = allocation_matrix(subtask, labels)[..., order]
        labelled = replace(view, entities=jnp.concatenate([view.entities, one_hot], axis=-1))
        in_scope = all_present(view)
        return Sight(labelled, in_scope & view.visible, in_scope, self.members(view, allocation))


@dataclass(frozen=True)
class Flat:
    """No subtasks: all agents see everything and learn one value, from the global reward."""

    spec: TaskSpec

    @property
    def things(self) -> int | None:
        return None

    @property
    def targets(self) -> int | None:
        return None

    @property
    def knows_subtasks(self) -> bool:
        return False

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        in_scope = all_present(view)
        members = view.present[..., : allocation.shape[-1], None].astype(jnp.float32)
        return Sight(view, in_scope & view.visible, in_scope, members)

    def active(self, view: View) -> Bool[Array, "*b 1"]:
        return jnp.ones((*view.active.shape[:-1], 1), bool)

    def rewards(self, outcome: Outcome) -> Float[Array, "*b 1"]:
        return outcome.reward[..., None]

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        return view.available
