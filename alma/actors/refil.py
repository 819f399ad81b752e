"""REFIL: an auxiliary loss in which agents imagine entities split into two groups, and values are mixed from utilities
within and across groups."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from alma.actors.networks import ActorNetworks
from alma.actors.qmix import ActorBatch, td_loss
from alma.actors.scope import Sight
from alma.nn.params import Params


def imagine_groups(key: PRNGKeyArray, windows: int, agents: int, entities: int) -> Bool[Array, "B 2 A E"]:
    """Split entities into two random groups per window; returns masks of each agent's own group and of the other.

    The probability that an entity is in the first group is drawn anew for every window.
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
    """TD loss of the values mixed from utilities within and across groups, with the same targets as `qmix_loss`."""
    mixed = networks.mix_groups(params, chosen, sight, sight.mixer_mask[:, None] & groups, batch.last_action)
    return td_loss(params, networks, batch, mixed)
