"""Attention QMIX: double Q-learning of the value of every subtask, mixed from the utilities of its agents."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.networks import ActorNetworks, Params, greedy, take
from alma.actors.options import Ends, NextAllocation
from alma.actors.scope import Sight
from alma.learning.replay import Step, Windows, pick
from alma.nn.trees import select
from alma.task.view import View


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Returns:
    """n-step returns of windows, as long as their first allocation is kept, and where to bootstrap."""

    rewards: Float[Array, "B K"]
    """Discounted sums of rewards."""
    steps: Int[Array, "B"]
    """Number of rewards summed; bootstrap from the state after so many steps. 0: nothing can be learned here."""
    ended: Bool[Array, "B"]
    """Whether the episode ended with the last of these steps, terminated or truncated."""
    terminated: Bool[Array, "B"]
    """Whether it terminated."""


def n_step_returns(steps: Step, lost: Bool[Array, "T B"], gamma: float) -> Returns:
    """Sum discounted rewards until the allocation changes or the episode ends, at most over all but the last step.

    Summing stops before a step marked `lost`, whose next state is needed but no longer in replay.
    """
    length, batch = steps.terminated.shape
    going = jnp.ones(batch, bool)
    rewards = jnp.zeros_like(steps.rewards[0])
    count = jnp.zeros(batch, jnp.int32)
    ended = terminated = jnp.zeros(batch, bool)
    for t in range(length - 1):
        same = jnp.all(steps.allocation[t] == steps.allocation[0], axis=-1)
        used = going & same & ~lost[t]
        rewards += gamma**t * jnp.where(used[:, None], steps.rewards[t], 0)
        count += used
        terminated |= used & steps.terminated[t]
        ended |= used & (steps.terminated[t] | steps.truncated[t])
        going = used & ~ended
    return Returns(rewards, count, ended, terminated)


class Later(NamedTuple):
    """The situations that a batch bootstraps from."""

    view: View
    decided: View
    """The view when the allocation in force was made."""
    last_action: Int[Array, "B A"]
    next_allocation: Int[Array, "B A"]
    """The allocation of the next step, or the current one if the episode has ended."""


def bootstrap_from(windows: Windows, returns: Returns, view_of: Callable[[Any], View]) -> Later:
    """The situations after the last reward: those of the next step, or the final ones of episodes that have ended."""
    batch = jnp.arange(returns.steps.size)
    last, last_decided = pick((windows.steps, windows.decided), returns.steps, batch)
    final, reached, final_decided = pick(
        (windows.steps, windows.reached, windows.decided), jnp.maximum(returns.steps - 1, 0), batch
    )
    state, decided, last_action, allocation = select(
        returns.ended,
        (reached, final_decided, final.action, final.allocation),
        (last.state, last_decided, last.last_action, last.allocation),
    )
    return Later(view_of(state), view_of(decided), last_action.astype(jnp.int32), allocation.astype(jnp.int32))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ActorBatch:
    """n-step transitions with their TD targets."""

    view: View
    decided: View
    """The view when the allocation in force was made."""
    allocation: Int[Array, "B A"]
    last_action: Int[Array, "B A"]
    action: Int[Array, "B A"]
    target: Float[Array, "B V"]
    counts: Float[Array, "B V"]
    """Weights in the loss: 1 for values of active subtasks with agents, 0 for values that cannot be learned here."""


def actor_batch(
    params: Params,
    target_params: Params,
    networks: ActorNetworks,
    view_of: Callable[[Any], View],
    key: PRNGKeyArray,
    windows: Windows,
    *,
    gamma: float,
    reward_scale: float,
    ends: Ends = "episode",
    next_allocation: NextAllocation = "kept",
) -> ActorBatch:
    """Compute TD targets by double Q-learning: the live network chooses the next actions, the target network values
    them.

    The next state is valued under the allocation of the first step. `next_allocation` says under which allocation the
    live network chooses the next actions: that one (kept), or the one in force at the next step (renewed).
    """
    first_key, look_key, live_key, target_key = jax.random.split(key, 4)
    # With ends="subtask", values of subtasks bootstrap through the end of an episode: they only end with their subtask.
    # The value of the whole task always ends with the episode.
    beyond = ends == "subtask" and networks.scope.knows_subtasks
    steps = windows.steps
    lost = (steps.truncated | steps.terminated if beyond else steps.truncated) & ~windows.kept
    returns = n_step_returns(steps, lost, gamma)
    later = bootstrap_from(windows, returns, view_of)
    first, first_decided = jax.tree.map(lambda leaf: leaf[0], (steps, windows.decided))
    allocation, view = first.allocation.astype(jnp.int32), view_of(first.state)

    sight = networks.look(look_key, later.view, allocation)
    seen = sight if next_allocation == "kept" else networks.look(look_key, later.view, later.next_allocation)
    strategy = networks.advise(params, live_key, later.decided)
    available = networks.scope.available(later.view, allocation)
    best = greedy(networks.utilities(params, seen, later.last_action, strategy), available)
    strategy = networks.advise(target_params, target_key, later.decided)
    utilities = take(networks.utilities(target_params, sight, later.last_action, strategy), best)
    value = networks.head.value(target_params["head"], networks.mix(target_params, utilities, sight, later.last_action))
    # A team with no agents left has no value, whatever the head outputs for an empty sum.
    left = jnp.any(sight.members > 0, axis=-2)
    goes_on = networks.scope.active(later.view) & left & (beyond | ~returns.terminated[:, None])
    discount = networks.spread(goes_on * gamma ** returns.steps[:, None], sight)
    # Rewards belong to the agents present at the first step: the agents of the final state may be others.
    before = networks.look(first_key, view, allocation)
    target = reward_scale * networks.spread(returns.rewards, before) + discount * value
    attended = jnp.any(before.members > 0, axis=-2)
    counts = networks.scope.active(view) & attended & (returns.steps > 0)[:, None]
    return ActorBatch(
        view=view,
        decided=view_of(first_decided),
        allocation=allocation,
        last_action=first.last_action.astype(jnp.int32),
        action=first.action.astype(jnp.int32),
        target=jax.lax.stop_gradient(target),
        counts=networks.spread(counts.astype(jnp.float32), before),
    )


def td_loss(params: Params, networks: ActorNetworks, batch: ActorBatch, mixed: Float[Array, "B V"]) -> Float[Array, ""]:
    """Mean squared TD error, weighted by `batch.counts`."""
    error = networks.head.error(params["head"], mixed, batch.target)
    return jnp.sum(batch.counts * error**2) / jnp.maximum(jnp.sum(batch.counts), 1)


def qmix_loss(
    params: Params, networks: ActorNetworks, batch: ActorBatch, sight: Sight, chosen: Float[Array, "B A"]
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The TD loss of attention QMIX, given the utilities of the actions taken, and metrics."""
    mixed = networks.mix(params, chosen, sight, batch.last_action)
    loss = td_loss(params, networks, batch, mixed)
    value = networks.head.value(params["head"], mixed)
    mean_value = jnp.sum(batch.counts * value) / jnp.maximum(jnp.sum(batch.counts), 1)
    return loss, {"actor_loss": loss, "actor_value": mean_value}
