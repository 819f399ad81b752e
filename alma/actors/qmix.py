"""Double Q-learning of the value of every subtask, mixed from the utilities of its agents, as in QMIX.

It is the same for all mixers (`alma/actors/mixer.py`), `Qmix` and the sum of VDN among them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.networks import ActorNetworks, greedy
from alma.actors.options import NextAllocation, ValueEnds
from alma.actors.returns import Bootstrap, Returns, lambda_returns, n_step_returns, same_value_continues
from alma.actors.scope import Sight
from alma.learning.replay import Windows, pick
from alma.nn.devices import divisor
from alma.nn.params import Params
from alma.play.trees import select
from alma.task.view import View


class Later(NamedTuple):
    """The situations that a batch bootstraps from."""

    view: View
    decision_view: View
    """The view when the allocation in force was made."""
    last_action: Int[Array, "B A"]
    next_allocation: Int[Array, "B A"]
    """The allocation of the next step, or the current one if the episode has ended."""


def bootstrap_from(windows: Windows, returns: Returns, view_of: Callable[[Any], View]) -> Later:
    """The situations after the last reward: those of the next step, or the final ones of episodes that have ended."""
    batch = jnp.arange(returns.steps.size)
    after, after_decided_in = pick((windows.steps, windows.decision_states), returns.steps, batch)
    last, final_state, last_decided_in = pick(
        (windows.steps, windows.final_states, windows.decision_states), jnp.maximum(returns.steps - 1, 0), batch
    )
    state, decision_state, last_action, allocation = select(
        returns.ended,
        (final_state, last_decided_in, last.action, last.allocation),
        (after.state, after_decided_in, after.last_action, after.allocation),
    )
    return Later(view_of(state), view_of(decision_state), last_action.astype(jnp.int32), allocation.astype(jnp.int32))


def bootstrap_value(
    params: Params,
    target_params: Params,
    networks: ActorNetworks,
    live_key: PRNGKeyArray,
    target_key: PRNGKeyArray,
    later: Later,
    sight: Sight,
    choosing_sight: Sight,
    available: Bool[Array, "B A U"],
) -> Float[Array, "B V"]:
    """The values of later situations by double Q-learning: the live network chooses actions, the target network values
    them.

    Actions are chosen by what agents see in `choosing_sight` and valued by what they see in `sight`.
    """
    strategy = networks.advise(params, live_key, later.decision_view)
    best = greedy(networks.utilities(params, choosing_sight, later.last_action, strategy), available)
    strategy = networks.advise(target_params, target_key, later.decision_view)
    masks = sight.utility_mask[:, None]
    utilities = networks.chosen_utilities(target_params, masks, sight, later.last_action, best, strategy)[:, 0]
    return networks.head.value(target_params["head"], networks.mix(target_params, utilities, sight, later.last_action))


def has_members(sight: Sight) -> Bool[Array, "*b K"]:
    """Which of the K sets of agents are not empty."""
    return jnp.any(sight.members > 0, axis=-2)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ActorBatch:
    """n-step transitions with their TD targets."""

    view: View
    decision_view: View
    """The view when the allocation in force was made."""
    allocation: Int[Array, "B A"]
    last_action: Int[Array, "B A"]
    action: Int[Array, "B A"]
    target: Float[Array, "B V"]
    weights: Float[Array, "B V"]
    """Weights in the loss: 1 for values of active subtasks with agents, 0 for values that cannot be learned here."""
    bootstrap: Bootstrap | None = None
    """The parts of the targets that lambda-returns need; None where they are not needed."""


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
    value_ends: ValueEnds = "episode",
    next_allocation: NextAllocation = "kept",
) -> ActorBatch:
    """The transitions from the first steps of windows, with their TD targets and weights.

    The later situation is valued under the allocation of the first step. `next_allocation` says under which allocation
    the live network chooses the actions there: that one (kept), or the one in force at that time (renewed).
    """
    first_key, look_key, live_key, target_key = jax.random.split(key, 4)
    # With value_ends="subtask", the value of a subtask bootstraps through the end of the episode: it ends with the
    # subtask alone. The value of the whole task always ends with the episode.
    outlives_episode = value_ends == "subtask" and networks.scope.knows_subtasks
    steps = windows.steps
    needs_final_state = steps.truncated | steps.terminated if outlives_episode else steps.truncated
    returns = n_step_returns(steps, needs_final_state & ~windows.has_final_state, gamma)
    later = bootstrap_from(windows, returns, view_of)
    first, decision_state = jax.tree.map(lambda leaf: leaf[0], (steps, windows.decision_states))
    allocation, view = first.allocation.astype(jnp.int32), view_of(first.state)

    later_sight = networks.look(look_key, later.view, allocation)
    renewed = next_allocation == "renewed"
    choosing_sight = networks.look(look_key, later.view, later.next_allocation) if renewed else later_sight
    available = networks.scope.available(later.view, allocation)
    value = bootstrap_value(
        params, target_params, networks, live_key, target_key, later, later_sight, choosing_sight, available
    )
    # A set with no agents left has no value, whatever the head outputs for an empty sum.
    goes_on = networks.scope.active(later.view) & has_members(later_sight)
    goes_on &= outlives_episode | ~returns.terminated[:, None]
    sight = networks.look(first_key, view, allocation)
    # Rewards belong to the agents present at the first step: the agents of the later situation may be others.
    rewards = networks.per_value(returns.rewards, sight)
    discount = networks.per_value(goes_on * gamma ** returns.steps[:, None], later_sight)
    is_learned = networks.scope.active(view) & has_members(sight) & (returns.steps > 0)[:, None]
    return ActorBatch(
        view=view,
        decision_view=view_of(decision_state),
        allocation=allocation,
        last_action=first.last_action.astype(jnp.int32),
        action=first.action.astype(jnp.int32),
        target=jax.lax.stop_gradient(reward_scale * rewards + discount * value),
        weights=networks.per_value(is_learned.astype(jnp.float32), sight),
        bootstrap=Bootstrap(value, discount, sight.members, later_sight.members),
    )


def with_lambda_returns(batch: ActorBatch, ended: Bool[Array, "T B"], decay: float) -> ActorBatch:
    """The batch with its one-step targets replaced by lambda-returns.

    The batch holds the first transitions of B windows, then the second ones, and so on; `ended` says which of them
    ended their episode.
    """
    if batch.bootstrap is None:
        raise ValueError("the batch has no bootstrap values")

    def by_step(rows: Float[Array, "n V"]) -> Float[Array, "T B V"]:
        return rows.reshape(*ended.shape, rows.shape[-1])

    continues = same_value_continues(batch.bootstrap, ended, by_step(batch.weights) > 0)
    target = lambda_returns(by_step(batch.target), batch.bootstrap, continues, decay)
    return replace(batch, target=jax.lax.stop_gradient(target.reshape(batch.target.shape)))


def td_loss(params: Params, networks: ActorNetworks, batch: ActorBatch, mixed: Float[Array, "B V"]) -> Float[Array, ""]:
    """Mean squared TD error, weighted by `batch.weights`."""
    error = networks.head.error(params["head"], mixed, batch.target)
    return jnp.sum(batch.weights * error**2) / divisor(batch.weights)


def qmix_loss(
    params: Params, networks: ActorNetworks, batch: ActorBatch, sight: Sight, chosen: Float[Array, "B A"]
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The TD loss of the mixed values, given the utilities of the actions taken, and metrics."""
    mixed = networks.mix(params, chosen, sight, batch.last_action)
    loss = td_loss(params, networks, batch, mixed)
    value = networks.head.value(params["head"], mixed)
    mean_value = jnp.sum(batch.weights * value) / divisor(batch.weights)
    return loss, {"actor_loss": loss, "actor_value": mean_value}
