"""Mixers: values of subtasks from the utilities of the agents allocated to them.

A mixer takes utilities under G masks at once: one in plain learning, two where agents imagine to be in groups
(REFIL). `members` says which agents each of K values is made of.
"""

from typing import Literal

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.actors.scope import Sight
from alma.actors.utility import with_actions
from alma.nn.attention import MultiHead
from alma.nn.layers import Dense


class Mixer(nn.Module):
    """What all mixers have in common: they learn one value for each of K sets of agents."""

    def spread(self, quantities: Float[Array, "*b K"], members: Float[Array, "*b A K"]) -> Float[Array, "*b V"]:
        """What is known of the K sets, for each of the V values that are learned."""
        return quantities


class Sum(Mixer):
    """VDN: a subtask is worth the sum of its agents' utilities."""

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b K"]:
        return jnp.einsum("...ga,...ak->...k", utilities, sight.members)


class Independent(Mixer):
    """No mixing: every agent learns by itself what its subtask will bring."""

    def spread(self, quantities: Float[Array, "*b K"], members: Float[Array, "*b A K"]) -> Float[Array, "*b A"]:
        return jnp.einsum("...k,...ak->...a", quantities, members)

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b 1 A"],
        sight: Sight,
        groups: Bool[Array, "*b 1 A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b A"]:
        return utilities[..., 0, :] * jnp.any(sight.members > 0, axis=-1)


HYPERNETWORKS = ("first", "final", "bias", "value")
"""What QMIX makes of entities: weights of the hidden layer, of the output, a bias of each."""


class Qmix(Mixer):
    """QMIX with hypernetworks that attend over entities; monotonic in every utility.

    Weights of agents that are no members are zero. Means are over all agent slots.
    """

    actions: int
    """Number of actions: hypernetworks see what agents did last."""
    width: int = 32
    hyper_width: int = 128
    heads: int = 4
    weights: Literal["softmax", "absolute"] = "softmax"
    offsets: Literal["signed", "absolute"] = "signed"
    """How the biases b1 and V are used: as they come, or their absolute values."""
    use_relations: bool = False

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b K"]:
        view, members = sight.view, sight.members
        # The entity layers of all hypernetworks are one product.
        encode = Dense(len(HYPERNETWORKS) * self.hyper_width, name="entities")
        encoded = nn.relu(encode(with_actions(view, last_action, self.actions)))
        inputs = dict(zip(HYPERNETWORKS, jnp.split(encoded[..., None, :, :], len(HYPERNETWORKS), axis=-1), strict=True))
        relations = view.relations[..., None, :, :, :] if self.use_relations else None

        def hypernetwork(name: str, masks: Bool[Array, "*b G A E"]) -> Float[Array, "*b G A W"]:
            attend = MultiHead(self.hyper_width, self.heads, last=self.width, name=name)
            return attend(inputs[name], masks, relations)

        def mean_of_members(name: str) -> Float[Array, "*b K W"]:
            rows = hypernetwork(name, sight.relates[..., None, :, :])[..., 0, :, :]
            return jnp.einsum("...aw,...ak->...kw", rows, members) / rows.shape[-2]

        first = self._positive(hypernetwork("first", groups))
        final = self._positive(mean_of_members("final"))
        bias = self._offset(mean_of_members("bias"))
        value = self._offset(jnp.mean(mean_of_members("value"), axis=-1))
        hidden = nn.elu(jnp.einsum("...ga,...gaw,...ak->...kw", utilities, first, members) + bias)
        return jnp.sum(hidden * final, axis=-1) + value

    def _positive(self, weights: Array) -> Array:
        return nn.softmax(weights) if self.weights == "softmax" else jnp.abs(weights)

    def _offset(self, values: Array) -> Array:
        return jnp.abs(values) if self.offsets == "absolute" else values
