"""Amortised Q-learning (AQL) of allocations: a proposal network suggests candidates, a critic chooses among them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from alma.allocators.networks import AllocatorNetworks
from alma.learning.replay import Decision, are_consecutive, pick
from alma.nn.params import Params
from alma.task.choice import choose_uniformly
from alma.task.view import NOBODY, View


@dataclass(frozen=True)
class CandidateCounts:
    """How many candidate allocations the critic chooses from."""

    proposals: int
    """Candidates drawn from the proposal network."""
    variations: int = 0
    """Additional candidates: proposals with one agent moved to a random subtask."""


def choose(
    networks: AllocatorNetworks,
    params: Params,
    key: PRNGKeyArray,
    encoded: Any,
    view: View,
    candidates: CandidateCounts,
) -> tuple[Int[Array, "*b A"], Int[Array, "*b P A"]]:
    """The candidate of highest value, and all candidates, proposals first."""
    drawn = draw_candidates(networks, params, key, encoded, view, candidates)
    return best_of(drawn, networks.values(params, encoded, drawn)), drawn


def best_of(candidates: Int[Array, "*b P A"], values: Float[Array, "*b P"]) -> Int[Array, "*b A"]:
    """The candidate of highest value."""
    best = jnp.argmax(values, axis=-1)
    return jnp.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]


def draw_candidates(
    networks: AllocatorNetworks,
    params: Params,
    key: PRNGKeyArray,
    encoded: Any,
    view: View,
    candidates: CandidateCounts,
) -> Int[Array, "*b P A"]:
    """Candidate allocations: proposals, then variations of them."""
    proposal_key, variation_key = jax.random.split(key)
    drawn = networks.proposals(params, proposal_key, encoded, candidates.proposals)
    return with_variations(variation_key, drawn, view, candidates)


def with_variations(
    key: PRNGKeyArray, drawn: Int[Array, "*b N A"], view: View, candidates: CandidateCounts
) -> Int[Array, "*b P A"]:
    """Proposals, then variations of them."""
    variations = move_one_agent(key, drawn[..., : candidates.variations, :], view)
    return jnp.concatenate([drawn, variations], axis=-2)


def move_one_agent(key: PRNGKeyArray, allocations: Int[Array, "*b P A"], view: View) -> Int[Array, "*b P A"]:
    """Move one random present agent of each allocation to a random active subtask.

    A proposal network of low entropy suggests the same allocation again and again; variations let the critic compare
    its neighbours, and the proposal network learn from them.
    """
    agent_key, subtask_key = jax.random.split(key)
    shape, agents = allocations.shape, allocations.shape[-1]
    moved = choose_uniformly(agent_key, jnp.broadcast_to(view.present[..., None, :agents], shape))
    active = jnp.broadcast_to(view.active[..., None, :], (*shape[:-1], view.active.shape[-1]))
    destination = choose_uniformly(subtask_key, active)
    return jnp.where(moved[..., None] == jnp.arange(agents), destination[..., None], allocations)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AllocatorBatch:
    """Decisions with their TD targets for the critic, and next states with their best candidates for the proposal."""

    view: View
    previous: Int[Array, "B A"]
    allocation: Int[Array, "B A"]
    made_at: Int[Array, "B"]
    """Environment steps of the run when the decision was made."""
    reward: Float[Array, "B"]
    discount: Float[Array, "B"]
    """The discount of the value of the next state; 0 where the episode terminated."""
    target: Float[Array, "B"]
    later: Any
    """The encodings of the next states."""
    later_by_target: Any
    """Their encodings by the target network."""
    best: Int[Array, "B A"]
    """The candidate of highest value in the next state."""
    proposals: Int[Array, "B P A"]
    """Proposals along whose prefixes the entropy is measured; if P is 0, it is measured along `best`."""


def join_decisions(chain: Decision, gamma: float) -> tuple[Decision, Int[Array, "B A"], Float[Array, "B"]]:
    """Join each chain of consecutive decisions into one n-step transition.

    Returns the transition (discounted sum of rewards; next state of the last decision), the allocation in force in that
    next state, and the discount of the value of that state.
    """
    follows = are_consecutive(chain)
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
    """Compute TD targets by double Q-learning: the live critic chooses among fresh candidates, the target critic values
    the choice.

    `chain` holds n x B rows, n possibly consecutive decisions each. The proposal network is trained in the state that
    is bootstrapped from, n decisions later; with n > 1 it therefore sees little of the second to n-th decisions of
    episodes. Where the episode terminated, the next state is the first of another episode: its value is not used, but
    the proposal network is trained there.
    """
    decisions, in_force, discount = join_decisions(chain, gamma)
    view, later = view_of(decisions.state), view_of(decisions.next_state)
    before = jnp.where(decisions.terminated[:, None], NOBODY, in_force)
    encoded = networks.encode(params, later, before)
    best, drawn = choose(networks, params, key, encoded, later, candidates)
    by_target = networks.encode(target_params, later, before)
    next_value = networks.values(target_params, by_target, best[..., None, :])[..., 0]
    reward, discount = reward_scale * decisions.reward, jnp.where(decisions.terminated, 0, discount)
    target = reward + discount * next_value
    return AllocatorBatch(
        view=view,
        previous=decisions.previous.astype(jnp.int32),
        allocation=decisions.allocation.astype(jnp.int32),
        made_at=decisions.made_at,
        reward=reward,
        discount=discount,
        target=jax.lax.stop_gradient(target),
        later=jax.lax.stop_gradient(encoded),
        later_by_target=by_target,
        best=best,
        proposals=drawn[:, :entropy_proposals],
    )


def aql_loss(
    params: Params, networks: AllocatorNetworks, batch: AllocatorBatch, entropy_weight: float
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The critic's TD loss, plus the proposal's loss: cross-entropy with the best candidate, minus an entropy bonus.

    The proposal's loss has no gradient for the critic and the encoder, and vice versa.
    """
    encoded = networks.encode(params, batch.view, batch.previous)
    raw = networks.raw_values(params, encoded, batch.allocation[..., None, :])[..., 0]
    error = networks.head.error(params["head"], raw, batch.target)
    considered = jnp.concatenate([batch.best[:, None], batch.proposals], axis=1)
    logs, entropies = networks.log_probabilities(params, batch.later, considered)
    log_best = logs[:, 0]
    entropy = jnp.mean(entropies[:, 1:] if batch.proposals.shape[1] else entropies, axis=1)
    metrics = {
        "critic_loss": jnp.mean(error**2),
        "proposal_loss": jnp.mean(-log_best - entropy_weight * entropy),
        "proposal_entropy": jnp.mean(entropy),
        "allocation_value": jnp.mean(networks.head.value(params["head"], raw)),
    }
    return metrics["critic_loss"] + metrics["proposal_loss"], metrics
