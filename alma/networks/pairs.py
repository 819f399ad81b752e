"""An allocator over (agent, subtask) pairs: codes of all pairs once a state, then cheap sums for every allocation.

Both the proposal and the critic see an allocation only as the sum, per subtask, of the codes of the pairs in it.
Because sums commute with linear layers, everything expensive is done once a state, however many allocations
are proposed or scored.
"""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.choice import choose_by_logits
from alma.networks.masks import allocation_matrix
from alma.task import View


class PairEncoder(nn.Module):
    """A code for every (agent, subtask) pair, and one for every subtask."""

    width: int

    @nn.compact
    def __call__(
        self, view: View, previous: Int[Array, "*b A"]
    ) -> tuple[Float[Array, "*b A M H"], Float[Array, "*b M H"]]:
        agents, subtasks = previous.shape[-1], view.active.shape[-1]
        things = view.entities[..., agents:, :]
        belongs = allocation_matrix(view.subtask[..., agents:], subtasks)
        thing = nn.Dense(self.width, name="entity")(things)
        relation = nn.Dense(self.width, use_bias=False, name="relation")(view.relations[..., agents:, :])
        agent = nn.Dense(self.width, use_bias=False, name="agent")(view.entities[..., :agents, :])
        pair = nn.relu(thing[..., None, :, :] + relation + agent[..., :, None, :])
        pooled = jnp.einsum("...aeh,...em->...amh", pair, belongs)
        stays = allocation_matrix(previous, subtasks)[..., None]
        before = self.param("previous", nn.initializers.normal(0.1), (self.width,))
        codes = nn.relu(nn.Dense(self.width, name="pair")(pooled) + stays * before)
        subtask = nn.relu(jnp.einsum("...eh,...em->...mh", nn.relu(thing), belongs))
        return codes, subtask


class ProposalCodes(NamedTuple):
    """What a proposal needs of a state."""

    own: Float[Array, "*b A M C"]
    """What a pair brings to its own choice."""
    given: Float[Array, "*b A M C"]
    """What a pair, once chosen, adds to its subtask for the agents that follow."""
    score: Float[Array, "C"]
    allowed: Bool[Array, "*b A M"]


class PairProposal(nn.Module):
    """Codes for an autoregressive choice of subtasks, agent after agent."""

    width: int
    choice_width: int
    """Of what is added up along the choice: the only part whose cost grows with the number of proposals."""

    @nn.compact
    def __call__(self, view: View, previous: Int[Array, "*b A"]) -> ProposalCodes:
        codes, subtask = PairEncoder(self.width)(view, previous)
        width = self.choice_width
        own = nn.Dense(width, name="own")(codes) + nn.Dense(width, name="subtask")(subtask)[..., None, :, :]
        given = nn.Dense(width, use_bias=False, name="given")(codes)
        score = self.param("score", nn.initializers.normal(0.1), (width,))
        agents = previous.shape[-1]
        return ProposalCodes(own, given, score, view.present[..., :agents, None] & view.active[..., None, :])


def _agent_logits(codes: ProposalCodes, agent: int, sums: Float[Array, "*b M C"]) -> Float[Array, "*b M"]:
    logits = nn.relu(codes.own[..., agent, :, :] + sums) @ codes.score
    return jnp.where(codes.allowed[..., agent, :], logits, -1e9)


def propose(key: PRNGKeyArray, codes: ProposalCodes) -> Int[Array, "*b A"]:
    """Draw one allocation; absent agents get -1."""
    choices = []
    draws = jax.random.uniform(key, codes.own.shape[:-2])
    sums = jnp.zeros_like(codes.own[..., 0, :, :])
    for agent in range(codes.own.shape[-3]):
        logits = _agent_logits(codes, agent, sums)
        choice = choose_by_logits(draws[..., agent], logits)
        choice = jnp.where(jnp.any(codes.allowed[..., agent, :], axis=-1), choice, -1)
        taken = jax.nn.one_hot(choice, logits.shape[-1])
        sums = sums + taken[..., None] * codes.given[..., agent, :, :]
        choices.append(choice)
    return jnp.stack(choices, axis=-1)


def log_probability(
    codes: ProposalCodes, allocation: Int[Array, "*b A"]
) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
    """The log-probability of an allocation, and the mean entropy along its prefixes."""
    members = allocation_matrix(allocation, codes.own.shape[-2])
    given = members[..., None] * codes.given
    before = jnp.cumsum(given, axis=-3) - given
    logits = jnp.where(codes.allowed, nn.relu(codes.own + before) @ codes.score, -1e9)
    logs = jax.nn.log_softmax(logits)
    decides = jnp.any(codes.allowed, axis=-1)
    total = jnp.sum(jnp.where(members > 0, logs, 0), axis=(-1, -2))
    entropy = -jnp.sum(jnp.where(codes.allowed, jnp.exp(logs) * logs, 0), axis=-1)
    return total, jnp.sum(jnp.where(decides, entropy, 0), axis=-1) / jnp.maximum(jnp.sum(decides, axis=-1), 1)


class PairCritic(nn.Module):
    """The value of allocations: sums of pair codes per subtask, a layer, and a sum over subtasks."""

    width: int

    @nn.compact
    def __call__(
        self, view: View, previous: Int[Array, "*b A"], allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        codes, subtask = PairEncoder(self.width)(view, previous)
        codes = nn.Dense(self.width, use_bias=False, name="team")(codes)
        base = nn.Dense(self.width, name="subtask")(subtask)
        members = allocation_matrix(allocations, view.active.shape[-1])
        hidden = nn.relu(jnp.einsum("...pam,...amh->...pmh", members, codes) + base[..., None, :, :])
        hidden = nn.relu(nn.Dense(self.width, name="hidden")(hidden))
        values = nn.Dense(1, name="value")(hidden)[..., 0]
        return jnp.sum(jnp.where(view.active[..., None, :], values, 0), axis=-1)
