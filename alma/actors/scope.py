"""What an allocation means to actors: what they look at, which values they learn, and from which rewards.

Masked, labelled and flat actors are the same networks; they differ in the masks and inputs made here.
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
    """A situation as the networks of actors get it. K values are learned."""

    view: View
    attends: Bool[Array, "*b A E"]
    """What an agent looks at: what it may, and can see."""
    relates: Bool[Array, "*b A E"]
    """What mixers look at for an agent: the same, seen or not, since values are of states."""
    members: Float[Array, "*b A K"]
    """Which agents make up each value."""


@runtime_checkable
class Scope(Protocol):
    """How actors take an allocation."""

    @property
    def things(self) -> int | None:
        """The most non-agent entities an agent looks at; None: all."""

    @property
    def knows_subtasks(self) -> bool:
        """Whether an allocation means anything."""

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        """What networks are given."""

    def active(self, view: View) -> Bool[Array, "*b K"]:
        """Values there still is something to learn of."""

    def rewards(self, outcome: Outcome) -> Float[Array, "*b K"]:
        """What each value adds up."""

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        """Actions that may be taken."""


@dataclass(frozen=True)
class Masked:
    """ALMA's: agents see their own subtask and nothing else, and learn its value from its reward."""

    spec: TaskSpec

    @property
    def things(self) -> int | None:
        return self.spec.max_things

    @property
    def knows_subtasks(self) -> bool:
        return True

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        relates = same_subtask(view, allocation)
        return Sight(view, relates & view.visible, relates, self.members(view, allocation))

    def members(self, view: View, allocation: Int[Array, "*b A"]) -> Float[Array, "*b A M"]:
        """Agents that are there, by the subtask they were given."""
        present = view.present[..., : allocation.shape[-1], None]
        return allocation_matrix(allocation, view.active.shape[-1]) * present

    def active(self, view: View) -> Bool[Array, "*b M"]:
        return view.active

    def rewards(self, outcome: Outcome) -> Float[Array, "*b M"]:
        return outcome.subtask_rewards

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        """Those aimed at other subtasks are ruled out where the task says so."""
        return available_under(view, allocation) if self.spec.mask_subtask_actions else view.available


@dataclass(frozen=True)
class Labelled(Masked):
    """The ablation without masks: agents see everything, each entity labelled with its subtask.

    Labels go through a permutation that is drawn anew every time, so that no subtask's number is special. They are
    one-hot features: a linear layer makes embeddings of them.
    """

    @property
    def things(self) -> int | None:
        return None

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        known, found = self.spec.subtasks, view.active.shape[-1]
        if found > known:
            raise ValueError(f"these networks have labels for {known} subtasks, and here are {found}")
        order = jax.random.permutation(key, known)
        labels = allocation_matrix(subtask_of_entities(view, allocation), known)[..., order]
        labelled = replace(view, entities=jnp.concatenate([view.entities, labels], axis=-1))
        relates = all_present(view)
        return Sight(labelled, relates & view.visible, relates, self.members(view, allocation))


@dataclass(frozen=True)
class Flat:
    """No subtasks: all agents see everything and learn one value from the global reward."""

    spec: TaskSpec

    @property
    def things(self) -> int | None:
        return None

    @property
    def knows_subtasks(self) -> bool:
        return False

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        relates = all_present(view)
        members = view.present[..., : allocation.shape[-1], None].astype(jnp.float32)
        return Sight(view, relates & view.visible, relates, members)

    def active(self, view: View) -> Bool[Array, "*b 1"]:
        return jnp.ones((*view.active.shape[:-1], 1), bool)

    def rewards(self, outcome: Outcome) -> Float[Array, "*b 1"]:
        return outcome.reward[..., None]

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        return view.available
