"""The low level: double Q-learning of every subtask's value, mixed from its agents' utilities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.networks.masks import allocation_matrix, same_subtask
from alma.replay import Step
from alma.task import View, available_under

Params = Any


@dataclass(frozen=True)
class ActorNetworks:
    """The two networks of the low level, as functions of parameters."""

    utility: Any
    mixer: Any
    mask_subtask_actions: bool

    def init(self, key: Array, view: View, allocation: Int[Array, "*b A"], subtasks: int) -> Params:
        utility_key, mixer_key = jax.random.split(key)
        attends = same_subtask(view, allocation)
        members = allocation_matrix(allocation, subtasks)
        utility = self.utility.init(utility_key, view, attends, allocation)
        mixer = self.mixer.init(mixer_key, jnp.zeros(allocation.shape), view, attends, members)
        return {"utility": utility, "mixer": mixer}

    def utilities(
        self, params: Params, view: View, allocation: Int[Array, "*b A"], last_action: Int[Array, "*b A"]
    ) -> Float[Array, "*b A U"]:
        return self.utility.apply(params["utility"], view, same_subtask(view, allocation), last_action)

    def mix(
        self, params: Params, chosen: Float[Array, "*b A"], view: View, allocation: Int[Array, "*b A"]
    ) -> Float[Array, "*b M"]:
        members = allocation_matrix(allocation, view.active.shape[-1])
        return self.mixer.apply(params["mixer"], chosen, view, same_subtask(view, allocation), members)

    def available(self, view: View, allocation: Int[Array, "*b A"]) -> Bool[Array, "*b A U"]:
        """Available actions, less those aimed at other subtasks where the task says so."""
        return available_under(view, allocation) if self.mask_subtask_actions else view.available


def greedy(values: Float[Array, "*b A U"], available: Bool[Array, "*b A U"]) -> Int[Array, "*b A"]:
    """The best available action of every agent."""
    return jnp.argmax(jnp.where(available, values, -jnp.inf), axis=-1)


def take(values: Float[Array, "*b A U"], actions: Int[Array, "*b A"]) -> Float[Array, "*b A"]:
    """The values of the chosen actions."""
    return jnp.take_along_axis(values, actions[..., None], axis=-1)[..., 0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Returns:
    """Rewards of a window under its first allocation, and where to bootstrap."""

    rewards: Float[Array, "B M"]
    steps: Int[Array, "B"]
    """Steps of reward; the state after so many is bootstrapped from. 0: nothing can be learned here."""
    ended: Bool[Array, "B"]
    """The episode ended within."""


def n_step_returns(window: Step, gamma: float) -> Returns:
    """Add rewards up until the allocation changes or the episode ends; the last step of a window is not counted.

    A step that was truncated has no successor in replay, so it is left out.
    """
    length, batch = window.terminated.shape
    going = jnp.ones(batch, bool)
    rewards = jnp.zeros_like(window.subtask_rewards[0])
    steps = jnp.zeros(batch, jnp.int32)
    ended = jnp.zeros(batch, bool)
    for t in range(length - 1):
        same = jnp.all(window.allocation[t] == window.allocation[0], axis=-1)
        used = going & same & ~window.truncated[t]
        rewards += gamma**t * jnp.where(used[:, None], window.subtask_rewards[t], 0)
        steps += used
        ended |= used & window.terminated[t]
        going = used & ~window.terminated[t]
    return Returns(rewards, steps, ended)


def qmix_loss(
    params: Params,
    target_params: Params,
    networks: ActorNetworks,
    view_of: Callable[[Any], View],
    window: Step,
    gamma: float,
    reward_scale: float,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Mean squared TD error over the subtasks that were active and had somebody allocated."""
    returns = n_step_returns(window, gamma)
    first = jax.tree.map(lambda leaf: leaf[0], window)
    allocation = first.allocation.astype(jnp.int32)
    action = first.action.astype(jnp.int32)
    batch = jnp.arange(action.shape[0])
    last = jax.tree.map(lambda leaf: leaf[returns.steps, batch], window)

    view, later = view_of(first.state), view_of(last.state)
    values = networks.utilities(params, view, allocation, first.last_action.astype(jnp.int32))
    mixed = networks.mix(params, take(values, action), view, allocation)

    # Next values under the same allocation; the live network chooses, the target network values.
    available = networks.available(later, allocation)
    last_action = last.last_action.astype(jnp.int32)
    best = greedy(networks.utilities(params, later, allocation, last_action), available)
    later_values = networks.utilities(target_params, later, allocation, last_action)
    bootstrap = networks.mix(target_params, take(later_values, best), later, allocation)
    goes_on = later.active & ~returns.ended[:, None]
    discount = gamma ** returns.steps[:, None]
    target = reward_scale * returns.rewards + jnp.where(goes_on, discount * bootstrap, 0)

    attended = jnp.any(allocation_matrix(allocation, view.active.shape[-1]) > 0, axis=-2)
    counts = (view.active & attended & (returns.steps > 0)[:, None]).astype(jnp.float32)
    error = counts * (mixed - jax.lax.stop_gradient(target))
    total = jnp.maximum(jnp.sum(counts), 1)
    loss = jnp.sum(error**2) / total
    return loss, {"actor_loss": loss, "actor_value": jnp.sum(counts * mixed) / total}
