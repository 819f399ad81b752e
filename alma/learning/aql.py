"""The high level: amortised Q-learning of allocations. A proposal suggests, a critic chooses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from alma.networks.pairs import log_probability, propose
from alma.replay import Decision
from alma.task import View

Params = Any


@dataclass(frozen=True)
class AllocatorNetworks:
    """The two networks of the high level, as functions of parameters."""

    proposal: Any
    critic: Any

    def init(self, key: Array, view: View, allocation: Int[Array, "*b A"]) -> Params:
        proposal_key, critic_key = jax.random.split(key)
        return {
            "proposal": self.proposal.init(proposal_key, view, allocation),
            "critic": self.critic.init(critic_key, view, allocation, allocation[..., None, :]),
        }

    def proposals(
        self, params: Params, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"], count: int
    ) -> Int[Array, "*b P A"]:
        """Draw allocations; everything but the drawing is done once a state."""
        codes = self.proposal.apply(params["proposal"], view, previous)
        keys = jax.random.split(key, count)
        draw = jax.vmap(propose, in_axes=(0, None), out_axes=-2)
        return draw(keys, codes)

    def values(
        self, params: Params, view: View, previous: Int[Array, "*b A"], allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        return self.critic.apply(params["critic"], view, previous, allocations)

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


def aql_loss(
    params: Params,
    target_params: Params,
    networks: AllocatorNetworks,
    view_of: Callable[[Any], View],
    key: PRNGKeyArray,
    batch: Decision,
    weight: Float[Array, "B"],
    *,
    gamma: float,
    reward_scale: float,
    proposals: int,
    entropy: float,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Critic and proposal together; neither's gradient reaches the other.

    The critic learns from the target critic's value of the best proposal in the next state; the proposal learns to
    suggest the best one in the state itself, the first of an episode included.
    """
    previous, allocation = batch.previous.astype(jnp.int32), batch.allocation.astype(jnp.int32)
    view, later = view_of(batch.state), view_of(batch.next_state)
    live = jax.lax.stop_gradient(params)
    now_key, later_key = jax.random.split(key)
    next_best, _ = choose(networks, live, later_key, later, allocation, proposals)
    next_value = networks.values(target_params, later, allocation, next_best[..., None, :])[..., 0]
    target = reward_scale * batch.reward + jnp.where(batch.terminated, 0, gamma * next_value)

    value = networks.values(params, view, previous, allocation[..., None, :])[..., 0]
    error = value - jax.lax.stop_gradient(target)
    total = jnp.maximum(jnp.sum(weight), 1e-6)
    critic_loss = jnp.sum(weight * error**2) / total

    best, _ = choose(networks, live, now_key, view, previous, proposals)
    log_best, spread = networks.log_probability(params, view, previous, best)
    proposal_loss = jnp.sum(weight * (-log_best - entropy * spread)) / total
    figures = {
        "critic_loss": critic_loss,
        "proposal_loss": proposal_loss,
        "proposal_entropy": jnp.sum(weight * spread) / total,
        "allocation_value": jnp.sum(weight * value) / total,
    }
    return critic_loss + proposal_loss, figures
