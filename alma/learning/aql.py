"""The high level: amortised Q-learning of allocations. A proposal suggests, a critic chooses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from alma.networks.popart import Head
from alma.networks.proposal import log_probability, propose
from alma.replay import Decision
from alma.task import NOBODY, View

Params = Any


@dataclass(frozen=True)
class AllocatorNetworks:
    """The networks of the high level, as functions of parameters."""

    proposal: Any
    critic: Any
    head: Head

    def init(self, key: Array, view: View, allocation: Int[Array, "*b A"]) -> Params:
        proposal_key, critic_key = jax.random.split(key)
        return {
            "proposal": self.proposal.init(proposal_key, view, allocation),
            "critic": self.critic.init(critic_key, view, allocation, allocation[..., None, :]),
            "head": self.head.init(),
        }

    def proposals(
        self, params: Params, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"], count: int
    ) -> Int[Array, "*b P A"]:
        """Draw allocations; everything but the drawing is done once a state."""
        choices = self.proposal.apply(params["proposal"], view, previous)
        draw = jax.vmap(propose, in_axes=(0, None), out_axes=-2)
        return draw(jax.random.split(key, count), choices)

    def raw_values(
        self, params: Params, view: View, previous: Int[Array, "*b A"], allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        """The critic's outputs; the head makes values of them, in the same order."""
        return self.critic.apply(params["critic"], view, previous, allocations)

    def values(
        self, params: Params, view: View, previous: Int[Array, "*b A"], allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        return self.head.value(params["head"], self.raw_values(params, view, previous, allocations))

    def log_probability(
        self, params: Params, view: View, previous: Int[Array, "*b A"], allocation: Int[Array, "*b A"]
    ) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
        return log_probability(self.proposal.apply(params["proposal"], view, previous), allocation)


def choose(
    networks: AllocatorNetworks,
    params: Params,
    key: PRNGKeyArray,
    view: View,
    previous: Int[Array, "*b A"],
    proposals: int,
) -> tuple[Int[Array, "*b A"], Int[Array, "*b A"]]:
    """The proposal with the highest value, and the first one."""
    drawn = networks.proposals(params, key, view, previous, proposals)
    best = jnp.argmax(networks.values(params, view, previous, drawn), axis=-1)
    chosen = jnp.take_along_axis(drawn, best[..., None, None], axis=-2)[..., 0, :]
    return chosen, drawn[..., 0, :]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AllocatorBatch:
    """Decisions with what they should be worth, and next states with the best allocation that was proposed there."""

    view: View
    previous: Int[Array, "B A"]
    allocation: Int[Array, "B A"]
    target: Float[Array, "B"]
    later: View
    before: Int[Array, "B A"]
    """The allocation in force in the next state."""
    best: Int[Array, "B A"]
    weight: Float[Array, "B"]


def allocator_batch(
    params: Params,
    target_params: Params,
    networks: AllocatorNetworks,
    view_of: Callable[[Any], View],
    key: PRNGKeyArray,
    decisions: Decision,
    weight: Float[Array, "B"],
    *,
    gamma: float,
    reward_scale: float,
    proposals: int,
) -> AllocatorBatch:
    """Double Q-learning: the live critic chooses among fresh proposals, the target critic values the choice.

    Where the episode ended, the next state is the first of another one: nothing of its value counts, but its
    proposals do.
    """
    allocation = decisions.allocation.astype(jnp.int32)
    view, later = view_of(decisions.state), view_of(decisions.next_state)
    before = jnp.where(decisions.terminated[:, None], NOBODY, allocation)
    best, _ = choose(networks, params, key, later, before, proposals)
    next_value = networks.values(target_params, later, before, best[..., None, :])[..., 0]
    target = reward_scale * decisions.reward + jnp.where(decisions.terminated, 0, gamma * next_value)
    return AllocatorBatch(
        view=view,
        previous=decisions.previous.astype(jnp.int32),
        allocation=allocation,
        target=jax.lax.stop_gradient(target),
        later=later,
        before=before,
        best=best,
        weight=weight,
    )


def aql_loss(
    params: Params, networks: AllocatorNetworks, batch: AllocatorBatch, entropy: float
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The critic learns from its targets, the proposal to suggest what the critic found best.

    Neither's gradient reaches the other.
    """
    raw = networks.raw_values(params, batch.view, batch.previous, batch.allocation[..., None, :])[..., 0]
    error = networks.head.error(params["head"], raw, batch.target)
    total = jnp.maximum(jnp.sum(batch.weight), 1e-6)

    def mean(rows: Float[Array, "B"]) -> Float[Array, ""]:
        return jnp.sum(batch.weight * rows) / total

    log_best, spread = networks.log_probability(params, batch.later, batch.before, batch.best)
    figures = {
        "critic_loss": mean(error**2),
        "proposal_loss": mean(-log_best - entropy * spread),
        "proposal_entropy": mean(spread),
        "allocation_value": mean(networks.head.value(params["head"], raw)),
    }
    return figures["critic_loss"] + figures["proposal_loss"], figures
