"""Trunks: features, relations and G masks in, one vector an agent and mask out.

Most of the work is the same under all masks, and done once: agents that imagine to be in groups look several times.
"""

import math
from collections.abc import Iterable
from functools import reduce

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from alma.nn.layers import Dense, by_rows, of_any_size


class Heads(nn.Module):
    """The weights of a layer, head by head."""

    inputs: int
    heads: int
    size: int

    @nn.compact
    def __call__(self) -> Float[Array, "n F d"]:
        kernel = self.param("kernel", of_any_size, (self.inputs, self.heads * self.size))
        return jnp.moveaxis(kernel.reshape(self.inputs, self.heads, self.size), 1, 0)


class Affine(nn.Module):
    """The weights of a layer, to be composed with those of others."""

    inputs: int
    width: int

    @nn.compact
    def __call__(self) -> tuple[Float[Array, "F W"], Float[Array, "W"]]:
        kernel = self.param("kernel", of_any_size, (self.inputs, self.width))
        return kernel, self.param("bias", nn.initializers.zeros, (self.width,))


def each_head(rows: Float[Array, "*b n F"], kernels: Float[Array, "n F W"]) -> Float[Array, "*b n W"]:
    """Every head through a layer of its own: a few large products, instead of many small ones."""
    flat = rows.reshape(math.prod(rows.shape[:-2]), *rows.shape[-2:])  # features may be none at all
    products = jnp.stack([flat[:, head] @ kernel for head, kernel in enumerate(kernels)], axis=1)
    return products.reshape(*rows.shape[:-1], kernels.shape[-1])


def all_heads(rows: Float[Array, "*b n F"], kernels: Float[Array, "n F W"]) -> Float[Array, "*b W"]:
    """Every head through a layer of its own, and the sum over heads: one large product."""
    joined = rows.reshape(*rows.shape[:-2], math.prod(rows.shape[-2:]))
    return by_rows(joined, kernels.reshape(-1, kernels.shape[-1]))


def add_up(parts: Iterable[Array]) -> Array:
    """The sum of one array or more."""
    return reduce(jnp.add, parts)


class MultiHead(nn.Module):
    """Multi-head attention; the first rows of the inputs are the queries, as many as the mask has.

    Relations, where there are any, add to keys and values. A row with nothing to attend to yields zeros. Several masks
    for the same inputs may be given along a leading axis of which inputs have one.

    As a rule there are more inputs than queries. So there are no keys: queries are turned into what they look for in
    inputs. And there are no values: inputs are mixed, and only then projected. The sums are the same.
    """

    width: int
    heads: int = 4
    last: int = 0
    """Width of one more linear layer, directly behind the output. The layers from values on are then composed into one
    before anything goes through them. 0: there is none."""

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "*#b E W"],
        attends: Bool[Array, "*#b Q E"],
        relations: Float[Array, "*#b Q E R"] | None = None,
    ) -> Float[Array, "*#b Q H"]:
        size = self.width // self.heads

        def kernels(name: str, seen: Array) -> Float[Array, "n F d"]:
            return Heads(seen.shape[-1], self.heads, size, name=name)()

        ask = Dense(self.width, use_bias=False, name="query")
        query = ask(inputs[..., : attends.shape[-2], :])
        query = query.reshape(*query.shape[:-1], self.heads, size)

        def sought(name: str, seen: Array) -> Float[Array, "*b Q n F"]:
            return each_head(query, jnp.swapaxes(kernels(name, seen), -1, -2))

        logits = jnp.einsum("...qhw,...ew->...qhe", sought("key", inputs), inputs)
        if relations is not None:
            logits += jnp.einsum("...qhr,...qer->...qhe", sought("key_relation", relations), relations)
        weights = masked_softmax(logits / jnp.sqrt(size), attends[..., None, :])
        found = [(jnp.einsum("...qhe,...ew->...qhw", weights, inputs), kernels("value", inputs))]
        if relations is not None:
            near = jnp.einsum("...qhe,...qer->...qhr", weights, relations)
            found.append((near, kernels("value_relation", relations)))
        anything = jnp.any(attends, axis=-1, keepdims=True)
        join, bias = Affine(self.width, self.width, name="output")()
        if not self.last:
            values = add_up(each_head(mixed, kernel) for mixed, kernel in found)
            output = by_rows(values.reshape(*values.shape[:-2], self.width), join) + bias
            return jnp.where(anything, output, 0)
        last, offset = Affine(self.width, self.last, name="last")()
        join_last = (join @ last).reshape(self.heads, size, self.last)
        output = add_up(all_heads(mixed, kernel @ join_last) for mixed, kernel in found) + bias @ last
        return jnp.where(anything, output, 0) + offset


class Attention(nn.Module):
    """A layer for every entity, then attention with agents as queries."""

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
    """Next to an agent's own features: sums over the things it attends to, and over the team mates.

    Each is seen together with the agent's own features; things come with their relations to the agent, team mates
    without. Only the first `things` an agent attends to under any mask are looked at (None: all): with as many as it
    can see nothing is lost, and most pairs need never be computed. A row with nothing to attend to yields zeros.
    """

    width: int
    things: int | None
    normalise: bool = True

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

        def pool(found: Float[Array, "*b G A K"], codes: Float[Array, "*b A K H"]) -> Float[Array, "*b G A H"]:
            return jnp.moveaxis(jnp.moveaxis(found, -3, -2) @ codes, -2, -3)

        found, things, near = self._gather(features, relations, attends)
        of_things = pool(found, pairs("thing", jnp.concatenate([things, near], axis=-1)))
        of_mates = pool(attends[..., :agents].astype(jnp.float32), pairs("mate", mine[..., None, :, :]))
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
        attends: Bool[Array, "*b G A E"],
    ) -> tuple[Float[Array, "*b G A K"], Float[Array, "*b A K F"], Float[Array, "*b A K R"]]:
        """The things each agent looks at: under which masks it does, their features and relations."""
        agents, entities = attends.shape[-2:]
        looked_at, near = attends[..., agents:].astype(jnp.float32), relations[..., agents:, :]
        things = features[..., None, agents:, :]
        if self.things is None or self.things >= entities - agents:
            return looked_at, jnp.broadcast_to(things, (*near.shape[:-1], things.shape[-1])), near
        _, at = jax.lax.top_k(jnp.max(looked_at, axis=-3), self.things)
        return (
            jnp.take_along_axis(looked_at, at[..., None, :, :], axis=-1),
            jnp.take_along_axis(things, at[..., None], axis=-2),
            jnp.take_along_axis(near, at[..., None], axis=-2),
        )


def masked_softmax(logits: Float[Array, "*#n"], mask: Bool[Array, "*#n"]) -> Float[Array, "*#n"]:
    """Softmax over the last axis among what the mask allows; zeros where it allows nothing."""
    logits = jnp.where(mask, logits, -jnp.inf)
    highest = jnp.max(logits, axis=-1, keepdims=True, initial=-1e9)
    weights = jnp.where(mask, jnp.exp(logits - highest), 0)
    return weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)
