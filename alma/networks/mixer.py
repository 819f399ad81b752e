"""Mixers: the value of a subtask from the utilities of the agents allocated to it."""

from typing import Literal

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from alma.networks.attention import Attention
from alma.task import View


class Sum(nn.Module):
    """VDN: a subtask is worth the sum of its agents' utilities."""

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b A"],
        view: View,
        attends: Bool[Array, "*b A E"],
        members: Float[Array, "*b A M"],
    ) -> Float[Array, "*b M"]:
        return jnp.einsum("...a,...am->...m", utilities, members)


class Qmix(nn.Module):
    """QMIX with hypernetworks that attend over entities; monotonic in every utility.

    `members` says which agents each output mixes: one output a subtask, weights of other agents zero.
    Means are over all agent slots.
    """

    width: int = 32
    hyper_width: int = 128
    heads: int = 4
    weights: Literal["softmax", "absolute"] = "softmax"
    use_relations: bool = False

    @nn.compact
    def __call__(
        self,
        utilities: Float[Array, "*b A"],
        view: View,
        attends: Bool[Array, "*b A E"],
        members: Float[Array, "*b A M"],
    ) -> Float[Array, "*b M"]:
        def hypernetwork(name: str) -> Float[Array, "*b A W"]:
            trunk = Attention(self.hyper_width, self.heads, self.use_relations, name=f"{name}_trunk")
            return nn.Dense(self.width, name=name)(trunk(view.entities, view.relations, attends))

        def mean_of_members(rows: Float[Array, "*b A W"]) -> Float[Array, "*b M W"]:
            return jnp.einsum("...aw,...am->...mw", rows, members) / rows.shape[-2]

        first = self._positive(hypernetwork("first"))
        final = self._positive(mean_of_members(hypernetwork("final")))
        bias = mean_of_members(hypernetwork("bias"))
        value = jnp.mean(mean_of_members(hypernetwork("value")), axis=-1)
        hidden = nn.elu(jnp.einsum("...a,...aw,...am->...mw", utilities, first, members) + bias)
        return jnp.sum(hidden * final, axis=-1) + value

    def _positive(self, weights: Array) -> Array:
        return nn.softmax(weights) if self.weights == "softmax" else jnp.abs(weights)
