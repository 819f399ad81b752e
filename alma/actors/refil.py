"""REFIL: agents imagine that only some of the others are there, and learn what their values would be made of."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from alma.actors.networks import ActorNetworks, Params
from alma.actors.qmix import ActorBatch, td_loss
from alma.actors.scope import Sight


def imagine_groups(key: PRNGKeyArray, windows: int, agents: int, entities: int) -> Bool[Array, "B 2 A E"]:
    """Split entities into two groups, differently in every window: who is in an agent's own, and who in the other.

    How likely an entity is in the first is drawn for every window.
    """
    chance_key, group_key = jax.random.split(key)
    chance = jax.random.uniform(chance_key, (windows, 1))
    in_first = jax.random.uniform(group_key, (windows, entities)) < chance
    within = in_first[:, :agents, None] == in_first[:, None, :]
    return jnp.stack([within, ~within], axis=1)


def refil_loss(
    params: Params,
    networks: ActorNetworks,
    batch: ActorBatch,
    sight: Sight,
    groups: Bool[Array, "B 2 A E"],
    chosen: Float[Array, "B 2 A"],
) -> Float[Array, ""]:
    """The TD error of values mixed from utilities within groups and across them, towards the same targets."""
    mixed = networks.mix_groups(params, chosen, sight, sight.relates[:, None] & groups, batch.last_action)
    return td_loss(params, networks, batch, mixed)
