"""Mixers: combine the utilities of the agents allocated to a subtask into the value of the subtask.

A mixer takes utilities under G masks at once: one for the TD loss, two for that of REFIL's imagined groups.
`sight.members` says which agents contribute to each of the K values.
"""

from typing import Literal

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.actors.scope import Sight
from alma.actors.utility import with_actions
from alma.nn.attention import Affine, Attention, MultiHead, Pooling
from alma.nn.layers import Dense, flat_dot_general


class Mixer(nn.Module):
    """Base class of mixers. By default, a mixer outputs one value for each of K sets of agents (V = K)."""

    def __call__(
        self,
        utilities: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b V"]:
        """The values of a situation, given the utilities of the actions that agents take, under each of G masks.

        `groups` are these masks as far as mixers attend: `sight.mixer_mask`, or its parts within and across imagined
        groups. `last_action` are the actions of the step before.
        """
        raise NotImplementedError

    def per_value(self, quantities: Float[Array, "*b K"], members: Float[Array, "*b A K"]) -> Float[Array, "*b V"]:
        """Map quantities of the K sets of agents, such as rewards, to the V values that are learned."""
        return quantities


class Sum(Mixer):
    """VDN: the value of a subtask is the sum of its agents' utilities."""

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b K"]:
        return jnp.einsum("...ga,...ak->...k", utilities, sight.members)


class SumAndValue(Mixer):
    """VDN-S: the sum of utilities, plus a value of the situation of the agents that contribute to it.

    What a situation is worth to all of them together need not be shared out among their utilities then, which are left
    with what one action is worth more than another. The value does not depend on actions, and is the same for imagined
    groups.
    """

    trunk: Attention | Pooling
    """Maps entities to one vector for each agent."""
    actions: int
    """Number of actions: the last actions of agents are among their features."""
    hidden: int
    """Width of the hidden layer."""

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b K"]:
        view, members = sight.view, sight.members
        features = with_actions(view, last_action, self.actions)
        seen = nn.relu(self.trunk(features, view.relations, sight.mixer_mask[..., None, :, :]))[..., 0, :, :]
        together = jnp.einsum("...aw,...ak->...kw", seen, members) / members.shape[-2]
        value = Dense(1, name="value")(nn.relu(Dense(self.hidden, name="hidden")(together)))[..., 0]
        return jnp.einsum("...ga,...ak->...k", utilities, members) + value


class Independent(Mixer):
    """No mixing (independent Q-learning): each agent's utility is a value, learned from the reward of its subtask."""

    def per_value(self, quantities: Float[Array, "*b K"], members: Float[Array, "*b A K"]) -> Float[Array, "*b A"]:
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
"""QMIX's hypernetworks: they output the weights of the hidden and output layers (first, final) and their biases."""


class Qmix(Mixer):
    """Attention QMIX: hypernetworks attend to entities; the value is monotonic in every utility.

    Agents that are not members of a set have zero weights. Means are over all agent slots.
    """

    actions: int
    """Number of actions: hypernetworks see the last actions of agents."""
    width: int = 32
    """Width of the hidden layer."""
    hyper_width: int = 128
    """Width of the hypernetworks."""
    heads: int = 4
    """Attention heads of the hypernetworks."""
    weights: Literal["softmax", "absolute"] = "softmax"
    """How weights are made positive."""
    offsets: Literal["signed", "absolute"] = "signed"
    """Whether the biases b1 and V are used as they are, or their absolute values."""
    use_relations: bool = False
    """Whether the hypernetworks see relations."""

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b K"]:
        view, members = sight.view, sight.members
        features = with_actions(view, last_action, self.actions)
        kernel, shift = Affine(features.shape[-1], len(HYPERNETWORKS) * self.hyper_width, name="entities")()
        layers = zip(*(jnp.split(part, len(HYPERNETWORKS), axis=-1) for part in (kernel, shift)), strict=True)
        # Kernels are split rather than what comes out: its parts and their gradients would have to be copied.
        encoded = [nn.relu(flat_dot_general(features, kernel) + shift)[..., None, :, :] for kernel, shift in layers]
        inputs = dict(zip(HYPERNETWORKS, encoded, strict=True))
        relations = view.relations[..., None, :, :, :] if self.use_relations else None

        def hypernetwork(name: str, masks: Bool[Array, "*b G A E"], mean: bool = False) -> Float[Array, "*b G A W"]:
            attend = MultiHead(self.hyper_width, self.heads, self.width, mean, name=name)
            return attend(inputs[name], masks, relations)

        def mean_of_members(name: str, mean: bool = False) -> Float[Array, "*b K W"]:
            rows = hypernetwork(name, sight.mixer_mask[..., None, :, :], mean)[..., 0, :, :]
            return jnp.einsum("...aw,...ak->...kw", rows, members) / rows.shape[-2]

        first = self._positive(hypernetwork("first", groups))
        final = self._positive(mean_of_members("final"))
        bias = self._offset(mean_of_members("bias"))
        value = self._offset(mean_of_members("value", mean=True)[..., 0])
        hidden = nn.elu(jnp.einsum("...ga,...gaw,...ak->...kw", utilities, first, members) + bias)
        return jnp.sum(hidden * final, axis=-1) + value

    def _positive(self, weights: Array) -> Array:
        return nn.softmax(weights) if self.weights == "softmax" else jnp.abs(weights)

    def _offset(self, values: Array) -> Array:
        return jnp.abs(values) if self.offsets == "absolute" else values
