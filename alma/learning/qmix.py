"""The low level: double Q-learning of every subtask's value, mixed from its agents' utilities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.networks.masks import allocation_matrix, look_at, same_subtask
from alma.networks.popart import Head
from alma.replay import Step
from alma.task import View, available_under

Params = Any


@dataclass(frozen=True)
class ActorNetworks:
    """The networks of the low level, as functions of parameters."""

    utility: Any
    mixer: Any
    head: Head
    mask_subtask_actions: bool
    features: tuple[int, ...]
    """Of entities, that are looked at."""

    def init(self, key: Array, view: View, allocation: Int[Array, "*b A"], subtasks: int) -> Params:
        utility_key, mixer_key = jax.random.split(key)
        view = look_at(self.features, view)
        attends = same_subtask(view, allocation)
        members = allocation_matrix(allocation, subtasks)
        utility = self.utility.init(utility_key, view, attends, allocation)
        mixer = self.mixer.init(mixer_key, jnp.zeros(allocation.shape), view, attends, members)
        return {"utility": utility, "mixer": mixer, "head": self.head.init()}

    def utilities(
        self, params: Params, view: View, allocation: Int[Array, "*b A"], last_action: Int[Array, "*b A"]
    ) -> Float[Array, "*b A U"]:
        seen = look_at(self.features, view)
        return self.utility.apply(params["utility"], seen, same_subtask(view, allocation), last_action)

    def mix(
        self, params: Params, chosen: Float[Array, "*b A"], view: View, allocation: Int[Array, "*b A"]
    ) -> Float[Array, "*b M"]:
        """One output a subtask; the head makes values of them."""
        members = allocation_matrix(allocation, view.active.shape[-1])
        seen = look_at(self.features, view)
        return self.mixer.apply(params["mixer"], chosen, seen, same_subtask(view, allocation), members)

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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ActorBatch:
    """Transitions, n steps long, and what their subtasks should be worth."""

    view: View
    allocation: Int[Array, "B A"]
    last_action: Int[Array, "B A"]
    action: Int[Array, "B A"]
    target: Float[Array, "B M"]
    counts: Float[Array, "B M"]
    """1 for subtasks that were active and had somebody allocated, 0 for those that teach nothing."""


def actor_batch(
    params: Params,
    target_params: Params,
    networks: ActorNetworks,
    view_of: Callable[[Any], View],
    window: Step,
    gamma: float,
    reward_scale: float,
) -> ActorBatch:
    """Double Q-learning: the live network chooses the next actions, the target network values them.

    The next state is valued under the same allocation as the first.
    """
    returns = n_step_returns(window, gamma)
    first = jax.tree.map(lambda leaf: leaf[0], window)
    last = jax.tree.map(lambda leaf: leaf[returns.steps, jnp.arange(leaf.shape[1])], window)
    allocation = first.allocation.astype(jnp.int32)
    view, later = view_of(first.state), view_of(last.state)

    last_action = last.last_action.astype(jnp.int32)
    available = networks.available(later, allocation)
    best = greedy(networks.utilities(params, later, allocation, last_action), available)
    later_values = networks.utilities(target_params, later, allocation, last_action)
    mixed = networks.mix(target_params, take(later_values, best), later, allocation)
    bootstrap = networks.head.value(target_params["head"], mixed)
    goes_on = later.active & ~returns.ended[:, None]
    target = reward_scale * returns.rewards + jnp.where(goes_on, gamma ** returns.steps[:, None] * bootstrap, 0)

    attended = jnp.any(allocation_matrix(allocation, view.active.shape[-1]) > 0, axis=-2)
    counts = view.active & attended & (returns.steps > 0)[:, None]
    return ActorBatch(
        view=view,
        allocation=allocation,
        last_action=first.last_action.astype(jnp.int32),
        action=first.action.astype(jnp.int32),
        target=jax.lax.stop_gradient(target),
        counts=counts.astype(jnp.float32),
    )


def qmix_loss(
    params: Params, networks: ActorNetworks, batch: ActorBatch
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """Mean squared TD error over the subtasks that count."""
    values = networks.utilities(params, batch.view, batch.allocation, batch.last_action)
    mixed = networks.mix(params, take(values, batch.action), batch.view, batch.allocation)
    error = networks.head.error(params["head"], mixed, batch.target)
    total = jnp.maximum(jnp.sum(batch.counts), 1)
    loss = jnp.sum(batch.counts * error**2) / total
    value = networks.head.value(params["head"], mixed)
    return loss, {"actor_loss": loss, "actor_value": jnp.sum(batch.counts * value) / total}
