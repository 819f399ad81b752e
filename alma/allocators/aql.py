"""The high level: amortised Q-learning of allocations. A proposal suggests, a critic chooses."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from alma.allocators.networks import AllocatorNetworks
from alma.learning.replay import Decision, follow_each_other, pick
from alma.task.choice import choose_uniformly
from alma.task.view import NOBODY, View

Params = Any


@dataclass(frozen=True)
class CandidateCounts:
    """How many allocations the critic gets to choose from."""

    proposals: int
    """Drawn from the proposal network."""
    variations: int = 0
    """More of them: proposals with one agent sent elsewhere at random."""


def choose(
    networks: AllocatorNetworks,
    params: Params,
    key: PRNGKeyArray,
    encoded: Any,
    view: View,
    candidates: CandidateCounts,
) -> tuple[Int[Array, "*b A"], Int[Array, "*b P A"]]:
    """The candidate with the highest value, and all candidates: proposals first."""
    drawn = draw_candidates(networks, params, key, encoded, view, candidates)
    best = jnp.argmax(networks.values(params, encoded, drawn), axis=-1)
    chosen = jnp.take_along_axis(drawn, best[..., None, None], axis=-2)[..., 0, :]
    return chosen, drawn


def draw_candidates(
    networks: AllocatorNetworks,
    params: Params,
    key: PRNGKeyArray,
    encoded: Any,
    view: View,
    candidates: CandidateCounts,
) -> Int[Array, "*b P A"]:
    """Proposals, then their variations."""
    proposal_key, variation_key = jax.random.split(key)
    drawn = networks.proposals(params, proposal_key, encoded, candidates.proposals)
    varied = vary(variation_key, drawn[..., : candidates.variations, :], view)
    return jnp.concatenate([drawn, varied], axis=-2)


def vary(key: PRNGKeyArray, allocations: Int[Array, "*b P A"], view: View) -> Int[Array, "*b P A"]:
    """Send one present agent of each allocation to a random active subtask.

    A proposal that has grown sure of itself suggests the same over and over; this lets the critic see what is next
    to it, and the proposal learn from that.
    """
    agent_key, subtask_key = jax.random.split(key)
    shape, agents = allocations.shape, allocations.shape[-1]
    who = choose_uniformly(agent_key, jnp.broadcast_to(view.present[..., None, :agents], shape))
    active = jnp.broadcast_to(view.active[..., None, :], (*shape[:-1], view.active.shape[-1]))
    where = choose_uniformly(subtask_key, active)
    return jnp.where(who[..., None] == jnp.arange(agents), where[..., None], allocations)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AllocatorBatch:
    """Decisions with what they should be worth, and next states with the best allocation that was proposed there."""

    view: View
    previous: Int[Array, "B A"]
    allocation: Int[Array, "B A"]
    target: Float[Array, "B"]
    later: Any
    """The next states, encoded."""
    best: Int[Array, "B A"]
    proposals: Int[Array, "B P A"]
    """Along which the entropy is measured; none: along the best."""


def chain_up(chain: Decision, gamma: float) -> tuple[Decision, Int[Array, "B A"], Float[Array, "B"]]:
    """Decisions that follow each other as one: rewards added up, and where the last one led to. Besides, the allocation
    that was in force there, and by how much the value of that state is discounted."""
    follows = follow_each_other(chain)
    count = jnp.sum(follows, axis=0)
    weights = gamma ** jnp.arange(len(follows))[:, None] * follows
    first = jax.tree.map(lambda leaf: leaf[0], chain)
    last = pick(chain, count - 1, jnp.arange(count.size))
    joined = replace(
        first,
        reward=jnp.sum(weights * chain.reward, axis=0),
        next_state=last.next_state,
        terminated=last.terminated,
    )
    return joined, last.allocation.astype(jnp.int32), gamma**count


def allocator_batch(
    params: Params,
    target_params: Params,
    networks: AllocatorNetworks,
    view_of: Callable[[Any], View],
    key: PRNGKeyArray,
    chain: Decision,
    *,
    gamma: float,
    reward_scale: float,
    candidates: CandidateCounts,
    entropy_proposals: int = 0,
) -> AllocatorBatch:
    """Double Q-learning: the live critic chooses among fresh proposals, the target critic values the choice.

    `chain` has n decisions that may follow each other, n x B. Proposals are learned where values are bootstrapped
    from, n decisions later: with n > 1, the second to n-th decisions of episodes hardly teach them anything. Where the
    episode ended, the next state is the first of another one: nothing of its value counts, but its proposals do.
    """
    decisions, in_force, discount = chain_up(chain, gamma)
    view, later = view_of(decisions.state), view_of(decisions.next_state)
    before = jnp.where(decisions.terminated[:, None], NOBODY, in_force)
    encoded = networks.encode(params, later, before)
    best, drawn = choose(networks, params, key, encoded, later, candidates)
    by_target = networks.encode(target_params, later, before)
    next_value = networks.values(target_params, by_target, best[..., None, :])[..., 0]
    target = reward_scale * decisions.reward + jnp.where(decisions.terminated, 0, discount * next_value)
    return AllocatorBatch(
        view=view,
        previous=decisions.previous.astype(jnp.int32),
        allocation=decisions.allocation.astype(jnp.int32),
        target=jax.lax.stop_gradient(target),
        later=jax.lax.stop_gradient(encoded),
        best=best,
        proposals=drawn[:, :entropy_proposals],
    )


def aql_loss(
    params: Params, networks: AllocatorNetworks, batch: AllocatorBatch, entropy: float
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The critic learns from its targets, the proposal to suggest what the critic found best.

    Neither's gradient reaches the other.
    """
    encoded = networks.encode(params, batch.view, batch.previous)
    raw = networks.raw_values(params, encoded, batch.allocation[..., None, :])[..., 0]
    error = networks.head.error(params["head"], raw, batch.target)
    considered = jnp.concatenate([batch.best[:, None], batch.proposals], axis=1)
    logs, spreads = networks.log_probabilities(params, batch.later, considered)
    log_best, spread = logs[:, 0], jnp.mean(spreads[:, 1:] if batch.proposals.shape[1] else spreads, axis=1)
    metrics = {
        "critic_loss": jnp.mean(error**2),
        "proposal_loss": jnp.mean(-log_best - entropy * spread),
        "proposal_entropy": jnp.mean(spread),
        "allocation_value": jnp.mean(networks.head.value(params["head"], raw)),
    }
    return metrics["critic_loss"] + metrics["proposal_loss"], metrics
