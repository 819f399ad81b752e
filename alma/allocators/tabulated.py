"""Pointer networks of small teams: all logits that can come up in a state, computed once for any number of allocations.

An agent's logit for a subtask depends only on which of the agents before it have taken that subtask: with A agents and
M subtasks, at most M x 2^A cases, which many proposals share.
"""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from alma.allocators.pointer import PointerProposalEncoding
from alma.allocators.proposal import Index, ProposalEncoding
from alma.nn.layers import flat_dot_general

MOST_EMBEDDINGS = 256
"""Logits are tabulated if that takes at most this number of embeddings of subtasks; larger problems are cheaper
proposal by proposal."""


class TabulatedPointerEncoding(NamedTuple):
    """A state as the pointer network encodes it, with the logits of every agent under every choice of those before it.

    The memory holds, for every subtask, the team of agents that have taken it: a number with one bit per agent.
    """

    tables: tuple[Float[Array, "*b S M"], ...]
    """For each agent a, its logits for subtasks that each of S = 2^a teams has taken."""
    allowed: Bool[Array, "*b A M"]

    @property
    def memory_grows(self) -> bool:
        return True  # The tables grow from agent to agent, so loops over agents must be unrolled here as well.

    def start(self) -> Int[Array, "*b M"]:
        return jnp.zeros_like(self.allowed[..., 0, :], jnp.int32)

    def logits(self, agent: Index, memory: Int[Array, "*b M"]) -> Float[Array, "*b M"]:
        # A masked sum instead of an index: the gradient of an index would be scattered number by number.
        table = self.tables[int(agent)]
        is_team = memory[..., None, :] == np.arange(table.shape[-2])[:, None]
        return jnp.sum(jnp.where(is_team, table, 0), axis=-2)

    def remember(self, agent: Index, memory: Int[Array, "*b M"], taken: Float[Array, "*b M"]) -> Int[Array, "*b M"]:
        return memory + 2**agent * taken.astype(jnp.int32)


def tabulate_if_small(encoding: PointerProposalEncoding) -> ProposalEncoding:
    """The encoding with all its logits tabulated, or as it is if there are too many agents and subtasks for that."""
    agents, subtasks = encoding.allowed.shape[-2:]
    if subtasks * 2 ** max(agents - 2, 0) > MOST_EMBEDDINGS:
        return encoding
    return TabulatedPointerEncoding(logit_tables(encoding), encoding.allowed)


class Teams(NamedTuple):
    """Every subtask with each of S teams, and what one more agent would add to it."""

    size: Float[Array, "S 1 1"]
    embedding: Float[Array, "*b S M H"]
    affinity: Float[Array, "*b S M A"]
    """Products of agents with what the team has added to the embedding."""
    addition: Float[Array, "*b S M H"]
    """What any agent that joins adds to the embedding, without what depends on the agent."""
    added_affinity: Float[Array, "*b S M A"]
    """Products of agents with the addition."""


def logit_tables(encoding: PointerProposalEncoding) -> tuple[Float[Array, "*b S M"], ...]:
    """For each agent a, its logits for subtasks that each of the 2^a teams of agents before it has taken."""
    who = encoding.agents
    of_things, of_size = jnp.split(0.2 * who @ encoding.counts_kernel.T, 2, axis=-1)
    alone = encoding.affinity + encoding.things[..., None, :] * of_things + (who @ encoding.counts_bias)[..., None]
    of_subtask, of_agent = jnp.split(encoding.update_kernel, 2)
    own_addition = nn.relu(who) @ of_agent + encoding.update_bias
    own_affinity = jnp.einsum("...bh,...ah->...ba", own_addition, who)

    def teams_of(size: Array, embedding: Array, affinity: Array) -> Teams:
        addition = flat_dot_general(nn.relu(embedding), of_subtask)
        return Teams(size, embedding, affinity, addition, jnp.einsum("...smh,...ah->...sma", addition, who))

    def join(agent: int, teams: Teams) -> Teams:
        return teams_of(
            teams.size + 1,
            teams.embedding + teams.addition + own_addition[..., None, None, agent, :],
            teams.affinity + teams.added_affinity + own_affinity[..., None, None, agent, :],
        )

    subtasks = encoding.subtasks[..., None, :, :]
    teams = teams_of(jnp.zeros((1, 1, 1)), subtasks, jnp.zeros((*subtasks.shape[:-1], who.shape[-2])))
    tables = []
    for agent in range(who.shape[-2]):
        of_team = teams.affinity[..., agent] + teams.size[..., 0] * of_size[..., None, agent, :]
        tables.append((alone[..., None, agent, :] + of_team) / who.shape[-1] ** 0.5)
        # A team's number has one bit per agent, so those with this agent come after those without.
        both = (teams, join(agent, teams))
        teams = jax.tree.map(lambda without, joined: jnp.concatenate([without, joined], axis=-3), *both)
    return tuple(tables)
