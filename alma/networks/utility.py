"""Utilities: the value of each action to each agent, from what the agent may look at."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.networks.attention import Attention, Pooling
from alma.task import View


class Utility(nn.Module):
    """Q^a for all agents: a trunk over entities, then two layers to the actions."""

    trunk: Attention | Pooling
    hidden: int
    actions: int

    @nn.compact
    def __call__(
        self, view: View, attends: Bool[Array, "*b A E"], last_action: Int[Array, "*b A"]
    ) -> Float[Array, "*b A U"]:
        agents, entities = attends.shape[-2:]
        # What an agent did last is a feature of its own; -1 (nothing yet) gives zeros.
        last = jax.nn.one_hot(last_action, self.actions)
        rest = [(0, 0)] * (last.ndim - 2) + [(0, entities - agents), (0, 0)]
        features = jnp.concatenate([view.entities, jnp.pad(last, rest)], axis=-1)
        hidden = nn.relu(self.trunk(features, view.relations, attends))
        hidden = nn.relu(nn.Dense(self.hidden)(hidden))
        values = nn.Dense(self.actions)(hidden)
        return jnp.where(view.present[..., :agents, None], values, 0)
