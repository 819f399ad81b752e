"""Trunks: networks that map entity features, relations and G masks to one vector per agent and mask.

REFIL needs the outputs under several masks. Most of the computation does not depend on the mask and is done once.
"""

import math
from collections.abc import Iterable
from functools import reduce

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from alma.nn.layers import Dense, flat_dot_general, lecun_normal_or_empty
from alma.nn.masks import bound


class Heads(nn.Module):
    """The kernel of a linear layer without bias, split by attention head."""

    inputs: int
    heads: int
    size: int

    @nn.compact
    def __call__(self) -> Float[Array, "n F d"]:
        kernel = self.param("kernel", lecun_normal_or_empty, (self.inputs, self.heads * self.size))
        return jnp.moveaxis(kernel.reshape(self.inputs, self.heads, self.size), 1, 0)


class Affine(nn.Module):
    """The kernel and bias of a linear layer, returned so that they can be composed with other layers."""

    inputs: int
    width: int

    @nn.compact
    def __call__(self) -> tuple[Float[Array, "F W"], Float[Array, "W"]]:
        kernel = self.param("kernel", lecun_normal_or_empty, (self.inputs, self.width))
        return kernel, self.param("bias", nn.initializers.zeros, (self.width,))


def each_head(rows: Float[Array, "*b n F"], kernels: Float[Array, "n F W"]) -> Float[Array, "*b n W"]:
    """Apply to each head its own linear layer: a few large matrix products instead of many small ones."""
    flat = rows.reshape(math.prod(rows.shape[:-2]), *rows.shape[-2:])  # not -1: there may be zero features
    products = jnp.stack([flat[:, head] @ kernel for head, kernel in enumerate(kernels)], axis=1)
    return products.reshape(*rows.shape[:-1], kernels.shape[-1])


def all_heads(rows: Float[Array, "*b n F"], kernels: Float[Array, "n F W"]) -> Float[Array, "*b W"]:
    """Apply to each head its own linear layer and sum over heads, as one large matrix product."""
    joined = rows.reshape(*rows.shape[:-2], math.prod(rows.shape[-2:]))
    return flat_dot_general(joined, kernels.reshape(-1, kernels.shape[-1]))


def values_of_heads(inputs: Float[Array, "*b E F"], kernels: Float[Array, "n F W"]) -> Float[Array, "*b E n W"]:
    """Apply each head's linear layer to the same inputs, as one large matrix product."""
    joined = jnp.moveaxis(kernels, 0, 1).reshape(kernels.shape[1], -1)
    return flat_dot_general(inputs, joined).reshape(*inputs.shape[:-1], kernels.shape[0], kernels.shape[2])


def add_up(parts: Iterable[Array]) -> Array:
    """The sum of one or more arrays."""
    return reduce(jnp.add, parts)


class MultiHead(nn.Module):
    """Multi-head attention in which the first Q inputs are the queries (Q is the second-to-last axis of the mask).

    Relations, if given, are added to keys and values. A query with nothing to attend to yields zeros. To evaluate
    several masks on the same inputs, put the masks along a leading axis that has size 1 in the inputs.

    Usually there are more inputs than queries, so keys and values are not formed: the key projection is applied to the
    queries, and the value projection to the weighted sums of inputs. The result is the same.
    """

    width: int
    heads: int = 4
    last: int = 0
    """Width of another linear layer right after the output layer; 0: none. The kernels of the value, output and last
    layers are then multiplied into one before they are applied, and it is applied to the inputs, before the weighted
    sums: with a narrow last layer, rows of values are shorter than rows of inputs."""
    mean: bool = False
    """Whether only the mean of the outputs of the last layer is needed: a single output (H = 1), from the mean of the
    kernel's columns."""

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "*#b E W"],
        attends: Bool[Array, "*#b Q E"],
        relations: Float[Array, "*#b Q E R"] | None = None,
    ) -> Float[Array, "*#b Q H"]:
        size = self.width // self.heads

        def kernels(name: str, features: Array) -> Float[Array, "n F d"]:
            return Heads(features.shape[-1], self.heads, size, name=name)()

        query = Dense(self.width, use_bias=False, name="query")(inputs[..., : attends.shape[-2], :])
        query = query.reshape(*query.shape[:-1], self.heads, size)

        def projected_query(name: str, features: Array) -> Float[Array, "*b Q n F"]:
            """The query times the kernel of the keys, so that its product with `features` gives logits."""
            return each_head(query, jnp.swapaxes(kernels(name, features), -1, -2))

        logits = jnp.einsum("...qhw,...ew->...qhe", projected_query("key", inputs), inputs)
        if relations is not None:
            logits += jnp.einsum("...qhr,...qer->...qhe", projected_query("key_relation", relations), relations)
        weights = masked_softmax(logits / jnp.sqrt(size), attends[..., None, :])
        value = kernels("value", inputs)
        of_relations: list[tuple[Array, Array]] = []
        if relations is not None:
            summed = jnp.einsum("...qhe,...qer->...qhr", weights, relations)
            of_relations = [(summed, kernels("value_relation", relations))]
        attends_to_any = jnp.any(attends, axis=-1, keepdims=True)
        join, bias = Affine(self.width, self.width, name="output")()
        if not self.last:
            # Weighted sums, each with the kernel of its value projection.
            sums = [(jnp.einsum("...qhe,...ew->...qhw", weights, inputs), value), *of_relations]
            by_head = add_up(each_head(summed, kernel) for summed, kernel in sums)
            output = flat_dot_general(by_head.reshape(*by_head.shape[:-2], self.width), join) + bias
            return jnp.where(attends_to_any, output, 0)
        last, offset = Affine(self.width, self.last, name="last")()
        if self.mean:
            last, offset = jnp.mean(last, axis=-1, keepdims=True), jnp.mean(offset, keepdims=True)
        join_last = (join @ last).reshape(self.heads, size, last.shape[-1])
        values = values_of_heads(inputs, value @ join_last)
        output = jnp.einsum("...qhe,...ehw->...qw", weights, values) + bias @ last
        output += sum(all_heads(summed, kernel @ join_last) for summed, kernel in of_relations)
        return jnp.where(attends_to_any, output, 0) + offset


class Attention(nn.Module):
    """The paper's trunk: a dense layer for each entity, then attention with the agents as queries."""

    width: int
    heads: int = 4
    use_relations: bool = True

    @nn.compact
    def __call__(
        self,
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Bool[Array, "*b G A E"],
    ) -> Float[Array, "*b G A H"]:
        inputs = nn.relu(Dense(self.width)(features))[..., None, :, :]
        return MultiHead(self.width, self.heads)(
            inputs, attends, relations[..., None, :, :, :] if self.use_relations else None
        )


class Pooling(nn.Module):
    """Sum pooling: an agent's own features, a sum over the non-agent entities ("things") it attends to, and one over
    its team mates.

    Things and team mates are encoded together with the agent's own features; things also with their relations to the
    agent. A row with nothing to attend to yields zeros.
    """

    width: int
    things: int | None
    """Only the first so many things that an agent attends to under any mask are encoded; None: all. Nothing is lost if
    an agent never attends to more, and most (agent, thing) pairs need not be computed."""
    normalise: bool = True
    """Whether layer normalisation is applied to the sums."""
    most_things: int | None = None
    """The most things that an agent attends to in training: a sum over more is scaled down to so many; None: no
    bound."""
    most_mates: int | None = None
    """The most agents in training, for the same reason."""

    @nn.compact
    def __call__(
        self,
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Bool[Array, "*b G A E"],
    ) -> Float[Array, "*b G A H"]:
        agents = attends.shape[-2]
        mine = features[..., :agents, :]

        def pairs(name: str, others: Float[Array, "*b n K W"]) -> Float[Array, "*b A K H"]:
            own = Dense(self.width, use_bias=False, name=f"own_to_{name}")(mine)
            return nn.relu(Dense(self.width, name=name)(others) + own[..., None, :])

        def pool(
            masks: Float[Array, "*b A G K"], codes: Float[Array, "*b A K H"], most: int | None
        ) -> Float[Array, "*b G A H"]:
            return jnp.moveaxis(masks @ codes * bound(masks, most), -2, -3)

        # The masks of an agent beside each other, as products with them need: moving axes later is slow.
        by_agent = jnp.moveaxis(attends, -3, -2).astype(jnp.float32)
        masks, things, their_relations = self._gather(features, relations, by_agent)
        to_things = pairs("thing", jnp.concatenate([things, their_relations], axis=-1))
        of_things = pool(masks, to_things, self.most_things)
        of_mates = pool(by_agent[..., :agents], pairs("mate", mine[..., None, :, :]), self.most_mates)
        itself = jnp.diagonal(attends[..., :agents], axis1=-2, axis2=-1)[..., None]
        own = itself * nn.relu(Dense(self.width, name="own")(mine))[..., None, :, :]
        sums = jnp.concatenate([own, of_things, of_mates], axis=-1)
        if self.normalise:
            sums = nn.LayerNorm(name="norm")(sums)
        return jnp.where(jnp.any(attends, axis=-1, keepdims=True), Dense(self.width, name="output")(sums), 0)

    def _gather(
        self,
        features: Float[Array, "*b E F"],
        relations: Float[Array, "*b A E R"],
        attends: Float[Array, "*b A G E"],
    ) -> tuple[Float[Array, "*b A G K"], Float[Array, "*b A K F"], Float[Array, "*b A K R"]]:
        """For the things that each agent attends to: their masks, features and relations."""
        agents, entities = attends.shape[-3], attends.shape[-1]
        masks, things = attends[..., agents:], features[..., None, agents:, :]
        relations = relations[..., agents:, :]
        if self.things is None or self.things >= entities - agents:
            return masks, jnp.broadcast_to(things, (*relations.shape[:-1], things.shape[-1])), relations
        _, at = jax.lax.top_k(jnp.max(masks, axis=-2), self.things)
        return (
            masks @ jax.nn.one_hot(at, entities - agents, axis=-2),  # products with masks that were indexed are slow
            jnp.take_along_axis(things, at[..., None], axis=-2),
            jnp.take_along_axis(relations, at[..., None], axis=-2),
        )


def masked_softmax(logits: Float[Array, "*#n"], mask: Bool[Array, "*#n"]) -> Float[Array, "*#n"]:
    """Softmax over the last axis where the mask is True, 0 elsewhere; all zeros if the mask is all False."""
    return _softmax_or_zeros(jnp.where(mask, logits, -jnp.inf))


@jax.custom_vjp
def _softmax_or_zeros(logits: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Softmax over the last axis; zeros where logits are minus infinity, even if all of them are.

    Its gradient takes its outputs alone; the automatic one keeps more and takes longer.
    """
    highest = jnp.max(logits, axis=-1, keepdims=True, initial=-1e9)
    weights = jnp.exp(logits - highest)
    return weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)


def _softmax_forward(logits: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    weights = _softmax_or_zeros(logits)
    return weights, weights


def _softmax_backward(weights: Float[Array, "*n"], gradient: Float[Array, "*n"]) -> tuple[Float[Array, "*n"]]:
    product = weights * gradient
    return (product - weights * jnp.sum(product, axis=-1, keepdims=True),)


_softmax_or_zeros.defvjp(_softmax_forward, _softmax_backward)
