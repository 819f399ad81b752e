"""COPA's networks: a coach that sees everything and gives each agent a strategy, and a recogniser that infers the
strategies from actions."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.utility import with_actions
from alma.nn.attention import Attention, Pooling
from alma.nn.layers import Dense
from alma.task.view import View

LOG_TWO_PI = 1.8378770664093453


class Gaussian(NamedTuple):
    """Independent normal distributions."""

    mean: Float[Array, "*n"]
    log_variance: Float[Array, "*n"]

    def draw(self, key: PRNGKeyArray) -> Float[Array, "*n"]:
        """A reparameterised sample, through which gradients flow."""
        return self.mean + jnp.exp(self.log_variance / 2) * jax.random.normal(key, self.mean.shape)

    def log_density(self, values: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return -0.5 * (LOG_TWO_PI + self.log_variance + (values - self.mean) ** 2 * jnp.exp(-self.log_variance))

    def entropy(self) -> Float[Array, "*n"]:
        return 0.5 * (1 + LOG_TWO_PI + self.log_variance)


class _Advice(nn.Module):
    """A layer that outputs a Gaussian for every agent."""

    size: int

    @nn.compact
    def __call__(self, hidden: Float[Array, "*b A H"]) -> Gaussian:
        mean, log_variance = jnp.split(Dense(2 * self.size)(nn.relu(hidden)), 2, axis=-1)
        return Gaussian(mean, jnp.clip(log_variance, -10, 0))


class Coach(nn.Module):
    """The distribution of each agent's strategy, given all entities."""

    trunk: Attention | Pooling
    size: int

    @nn.compact
    def __call__(self, view: View, attends: Bool[Array, "*b A E"]) -> Gaussian:
        return _Advice(self.size)(self.trunk(view.entities, view.relations, attends[..., None, :, :])[..., 0, :, :])


class Recogniser(nn.Module):
    """The distribution of each agent's strategy, inferred from all entities and the actions of the agents.

    Two layers after the trunk.
    """

    trunk: Attention | Pooling
    size: int
    actions: int

    @nn.compact
    def __call__(self, view: View, attends: Bool[Array, "*b A E"], actions: Int[Array, "*b A"]) -> Gaussian:
        features = with_actions(view, actions, self.actions)
        found = nn.relu(self.trunk(features, view.relations, attends[..., None, :, :])[..., 0, :, :])
        return _Advice(self.size)(Dense(self.trunk.width)(found))
