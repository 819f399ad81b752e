"""Trunks: features, relations and a mask in, one vector an agent out."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Attention(nn.Module):
    """Multi-head attention with agents as queries; relations, if used, add to keys and values.

    A row with nothing to attend to yields zeros.
    """

    width: int
    heads: int = 4
    use_relations: bool = True

    @nn.compact
    def __call__(
        self,
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Bool[Array, "*b A E"],
    ) -> Float[Array, "*b A H"]:
        agents = attends.shape[-2]
        size = self.width // self.heads
        inputs = nn.relu(nn.Dense(self.width)(features))

        def split(array: Array) -> Array:
            return array.reshape(*array.shape[:-1], self.heads, size)

        def project(name: str, array: Array) -> Array:
            return split(nn.Dense(self.width, use_bias=False, name=name)(array))

        query = project("query", inputs[..., :agents, :])
        key, value = project("key", inputs), project("value", inputs)
        logits = jnp.einsum("...ahd,...ehd->...hae", query, key)
        if self.use_relations:
            key_ae, value_ae = project("key_relation", relations), project("value_relation", relations)
            logits += jnp.einsum("...ahd,...aehd->...hae", query, key_ae)
        weights = masked_softmax(logits / jnp.sqrt(size), attends[..., None, :, :])
        mixed = jnp.einsum("...hae,...ehd->...ahd", weights, value)
        if self.use_relations:
            mixed += jnp.einsum("...hae,...aehd->...ahd", weights, value_ae)
        output = nn.Dense(self.width, name="output")(mixed.reshape(*mixed.shape[:-2], self.width))
        return jnp.where(jnp.any(attends, axis=-1, keepdims=True), output, 0)


class Pooling(nn.Module):
    """Sum over what an agent attends to, of a layer over features and relations, next to the agent's own features.

    As expressive as one attention layer where subtasks are small, at a fraction of its cost.
    """

    width: int

    @nn.compact
    def __call__(
        self,
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Bool[Array, "*b A E"],
    ) -> Float[Array, "*b A H"]:
        agents = attends.shape[-2]
        entity = nn.Dense(self.width, name="entity")(features)
        relation = nn.Dense(self.width, use_bias=False, name="relation")(relations)
        pair = nn.relu(entity[..., None, :, :] + relation)
        pooled = jnp.einsum("...ae,...aeh->...ah", attends.astype(pair.dtype), pair)
        own = nn.relu(nn.Dense(self.width, name="own")(features[..., :agents, :]))
        both = nn.LayerNorm(name="norm")(jnp.concatenate([own, pooled], axis=-1))
        return nn.Dense(self.width, name="output")(both)


def masked_softmax(logits: Float[Array, "*n"], mask: Bool[Array, "*m"]) -> Float[Array, "*n"]:
    """Softmax over the last axis among what the mask allows; zeros where it allows nothing."""
    logits = jnp.where(mask, logits, -jnp.inf)
    highest = jnp.max(logits, axis=-1, keepdims=True, initial=-1e9)
    weights = jnp.where(mask, jnp.exp(logits - highest), 0)
    return weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)
