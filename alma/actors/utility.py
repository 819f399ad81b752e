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
    targets: int | None = None
    """The most actions of an agent with a target that it attends to, for `Aim`; None: any number."""

    @nn.compact
    def __call__(
        self,
        view: View,
        attends: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
        strategy: Float[Array, "*b A H"] | None = None,
        action: Int[Array, "*b A"] | None = None,
    ) -> Float[Array, "*b G A U"]:
        """The values of all actions; with `action`, of this one action of each agent alone, which costs less: U = 1."""
        # The last action of an agent is one of its features.
        features = with_actions(view, last_action, self.actions)
        hidden = nn.relu(self.trunk(features, view.relations, attends))
        hidden = nn.relu(Dense(self.hidden)(hidden))
        if strategy is not None:
            hidden += strategy[..., None, :, :]
        values, target = Dense(self.actions)(hidden), view.target
        if action is not None:
            values = jnp.take_along_axis(values, action[..., None, :, None], axis=-1)
            target = jnp.take_along_axis(target, action[..., None], axis=-1)
        if self.aim:
            values += Aim(self.aim, self.targets)(hidden, features, view.relations, attends, target)
        return jnp.where(view.present[..., None, : attends.shape[-2], None], values, 0)


class Aim(nn.Module):
    """The contribution of an action's target to the action's value.

    The same network is used for every agent and target, so that what is learned about one enemy holds for all,
    whichever slot they are in. Targets that an agent does not attend to contribute 0.
    """

    width: int
    most: int | None = None
    """Only the first so many actions of an agent with a target that it attends to under any mask are computed; None:
    all. Nothing is lost if there never are more."""

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "*b G A H"],
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Bool[Array, "*b G A E"],
        target: Int[Array, "*b A U"],
    ) -> Float[Array, "*b G A U"]:
        counts = jnp.take_along_axis(attends, jnp.maximum(target, 0)[..., None, :, :], axis=-1)
        counts &= (target >= 0)[..., None, :, :]
        if self.most is None or self.most >= target.shape[-1]:
            return jnp.where(counts, self._worth(hidden, features, relations, target), 0)
        found, at = jax.lax.top_k(jnp.any(counts, axis=-3).astype(jnp.float32), self.most)
        worth = self._worth(hidden, features, relations, jnp.take_along_axis(target, at, axis=-1))
        placed = jax.nn.one_hot(at, target.shape[-1]) * found[..., None]  # K x U
        return jnp.where(counts, jnp.einsum("...gak,...aku->...gau", worth, placed), 0)

    def _worth(
        self,
        hidden: Float[Array, "*b G A H"],
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        target: Int[Array, "*b A K"],
    ) -> Float[Array, "*b G A K"]:
        """What each of K targets of every agent contributes; anything where there is no target (-1)."""
        at = jnp.maximum(target, 0)[..., None]
        of_entity = Dense(self.width, use_bias=False)(features)[..., None, :, :]
        of_target = jnp.take_along_axis(of_entity, at, axis=-2)
        of_pair = Dense(self.width)(jnp.take_along_axis(relations, at, axis=-2))
        of_agent = Dense(self.width, use_bias=False)(hidden)[..., None, :]
        both = (of_target + of_pair)[..., None, :, :, :]
        return Dense(1)(nn.relu(both + of_agent))[..., 0]


def with_actions(view: View, actions: Int[Array, "*b A"], count: int) -> Float[Array, "*b E W"]:
    """Entity features with the given action of each agent appended one-hot; zeros for non-agents and for action -1."""
    chosen = jax.nn.one_hot(actions, count)
    rest = view.entities.shape[-2] - actions.shape[-1]
    padding = [(0, 0)] * (chosen.ndim - 2) + [(0, rest), (0, 0)]
    return jnp.concatenate([view.entities, jnp.pad(chosen, padding)], axis=-1)
