"""Utilities: the value of each action of each agent, given the entities that the agent attends to."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.nn.attention import Attention, Pooling
from alma.nn.layers import Dense
from alma.task.view import View


class Utility(nn.Module):
    """Q^a of all agents: a trunk over entities, then two layers, plus an optional contribution of targets (`Aim`).

    Computed under G masks at once: usually one, three with the imagined groups of REFIL.
    """

    trunk: Attention | Pooling
    hidden: int
    """Width of the hidden layer after the trunk."""
    actions: int
    """Number of actions."""
    aim: int = 0
    """Width of `Aim`; 0: none."""

    @nn.compact
    def __call__(
        self,
        view: View,
        attends: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
        strategy: Float[Array, "*b A H"] | None = None,
    ) -> Float[Array, "*b G A U"]:
        # The last action of an agent is one of its features.
        features = with_actions(view, last_action, self.actions)
        hidden = nn.relu(self.trunk(features, view.relations, attends))
        hidden = nn.relu(Dense(self.hidden)(hidden))
        if strategy is not None:
            hidden += strategy[..., None, :, :]
        values = Dense(self.actions)(hidden)
        if self.aim:
            values += Aim(self.aim)(hidden, features, view.relations, attends, view.target)
        return jnp.where(view.present[..., None, : attends.shape[-2], None], values, 0)


class Aim(nn.Module):
    """The contribution of an action's target to the action's value.

    The same network is used for every agent and target, so that what is learned about one enemy holds for all,
    whichever slot they are in. Targets that an agent does not attend to contribute 0.
    """

    width: int

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "*b G A H"],
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Bool[Array, "*b G A E"],
        target: Int[Array, "*b A U"],
    ) -> Float[Array, "*b G A U"]:
        of_target = Dense(self.width, use_bias=False)(features)[..., None, None, :, :]
        of_pair = Dense(self.width)(relations)[..., None, :, :, :]
        of_agent = Dense(self.width, use_bias=False)(hidden)[..., None, :]
        worth = Dense(1)(nn.relu(of_target + of_pair + of_agent))[..., 0]
        target = target[..., None, :, :]
        found = jnp.take_along_axis(jnp.where(attends, worth, 0), jnp.maximum(target, 0), axis=-1)
        return jnp.where(target >= 0, found, 0)


def with_actions(view: View, actions: Int[Array, "*b A"], count: int) -> Float[Array, "*b E W"]:
    """Entity features with the given action of each agent appended one-hot; zeros for non-agents and for action -1."""
    chosen = jax.nn.one_hot(actions, count)
    rest = view.entities.shape[-2] - actions.shape[-1]
    padding = [(0, 0)] * (chosen.ndim - 2) + [(0, rest), (0, 0)]
    return jnp.concatenate([view.entities, jnp.pad(chosen, padding)], axis=-1)
