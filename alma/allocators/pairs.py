"""Networks over (agent, subtask) pairs: embeddings of all pairs once per state, then cheap sums for every allocation.

The proposal and the critic see an allocation only as the sum, per subtask, of the embeddings ("codes") of its pairs.
Because sums commute with linear layers, everything expensive is computed once per state, however many allocations are
proposed or valued.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.allocators.proposal import UNROLLED, Index
from alma.nn.layers import Dense
from alma.nn.masks import allocation_matrix, bounded_sum, masked_sum
from alma.task.view import View


class PairEncoder(nn.Module):
    """Embeddings of all (agent, subtask) pairs and of all subtasks.

    Every embedding includes a summary of the whole situation, the sums over the team and over the active subtasks:
    whether one agent is enough for a subtask depends on who else there is.
    """

    width: int
    things: int
    """The most non-agent entities of any one subtask."""
    agents: int | None = None
    """The most agents in training: of larger teams, the summary is that of so many average ones; None: no bound."""
    subtasks: int | None = None
    """The most subtasks in training, for the same reason."""

    @nn.compact
    def __call__(
        self, view: View, previous: Int[Array, "*b A"]
    ) -> tuple[Float[Array, "*b A M H"], Float[Array, "*b M 2*H"]]:
        agents, subtasks = previous.shape[-1], view.active.shape[-1]
        belongs = jnp.swapaxes(allocation_matrix(view.subtask[..., agents:], subtasks), -1, -2)
        found, at = jax.lax.top_k(belongs, self.things)
        features = jnp.take_along_axis(view.entities[..., None, agents:, :], at[..., None], axis=-2)
        relations = jnp.take_along_axis(
            view.relations[..., None, agents:, :], at[..., None, :, :, None], axis=-2
        )  # A x M x K x R
        thing = Dense(self.width, name="entity")(features)
        relation = Dense(self.width, use_bias=False, name="relation")(relations)
        agent = Dense(self.width, use_bias=False, name="agent")(view.entities[..., :agents, :])
        pair = nn.relu(thing[..., None, :, :, :] + relation + agent[..., :, None, None, :])
        pooled = masked_sum(pair, found[..., None, :, :])
        subtask = masked_sum(nn.relu(thing), found)
        work = bounded_sum(subtask, view.active, self.subtasks)
        member = nn.relu(Dense(self.width, name="member")(view.entities[..., :agents, :]))
        team = bounded_sum(member, view.present[..., :agents], self.agents)
        whole = nn.relu(Dense(self.width, name="whole")(jnp.concatenate([work, team], axis=-1)))[..., None, :]

        stays = allocation_matrix(previous, subtasks)[..., None]
        before = self.param("previous", nn.initializers.normal(0.1), (self.width,))
        context = Dense(self.width, use_bias=False, name="context")(whole)[..., None, :]
        codes = nn.relu(Dense(self.width, name="pair")(pooled) + context + stays * before)
        return codes, jnp.concatenate([subtask, jnp.broadcast_to(whole, subtask.shape)], axis=-1)


class PairProposalEncoding(NamedTuple):
    """A state as the proposal network over pairs encodes it.

    The memory is the sum, per subtask, of narrow vectors of the pairs chosen so far. Its width C is small, because this
    is the only part whose cost grows with the number of proposals.
    """

    own: Float[Array, "*b A M C"]
    """The contribution of a pair to its own logit."""
    given: Float[Array, "*b A M C"]
    """The vector that a chosen pair adds to the memory of its subtask, which the following agents read."""
    score: Float[Array, "C"]
    """Weights of the last layer, which outputs logits."""
    allowed: Bool[Array, "*b A M"]

    @property
    def memory_grows(self) -> bool:
        return False

    def start(self) -> Any:
        return jnp.zeros_like(self.own[..., 0, :, :])

    def logits(self, agent: Index, memory: Any) -> Float[Array, "*b M"]:
        return nn.relu(self.own[..., agent, :, :] + memory) @ self.score

    def remember(self, agent: Index, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        return memory + taken[..., None] * self.given[..., agent, :, :]


class PairProposal(nn.Module):
    """A proposal network over the embeddings of pairs."""

    width: int

    @nn.compact
    def __call__(
        self, codes: Float[Array, "*b A M H"], subtasks: Float[Array, "*b M H2"], allowed: Bool[Array, "*b A M"]
    ) -> PairProposalEncoding:
        own = Dense(self.width, name="own")(codes) + Dense(self.width, name="subtask")(subtasks)[..., None, :, :]
        given = Dense(self.width, use_bias=False, name="given")(codes)
        score = self.param("score", nn.initializers.normal(0.1), (self.width,))
        return PairProposalEncoding(own, given, score, allowed)


def sum_per_subtask(codes: Float[Array, "*b A M H"], allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P M H"]:
    """The sum, per subtask, of the embeddings of the pairs in an allocation.

    Sums agent by agent: a product with the one-hot allocation matrix takes more than twice as long. For many agents,
    each chosen embedding is added to its subtask alone.
    """
    agents, subtasks = codes.shape[-3:-1]
    if agents > UNROLLED:
        return _scatter_per_subtask(codes[..., None, :, :, :], allocations)

    def given(agent: int) -> Float[Array, "*b P M H"]:
        takes = allocations[..., agent, None] == jnp.arange(subtasks)
        return jnp.where(takes[..., None], codes[..., None, agent, :, :], 0)

    return sum(map(given, range(1, agents)), start=given(0))


@partial(jnp.vectorize, signature="(a,m,h),(a)->(m,h)")
def _scatter_per_subtask(codes: Float[Array, "A M H"], allocation: Int[Array, "A"]) -> Float[Array, "M H"]:
    agents, subtasks, width = codes.shape
    chosen = codes[jnp.arange(agents), jnp.maximum(allocation, 0)]
    nowhere = jnp.where(allocation >= 0, allocation, subtasks)  # out of bounds: dropped
    return jnp.zeros((subtasks, width), codes.dtype).at[nowhere].add(chosen, mode="drop")


class Scaled(nn.Module):
    """RMS normalisation: vectors scaled to a mean square of one, then by learned gains.

    The mean square is computed as a product with a vector, because XLA would compute the inputs of a sum twice.
    """

    @nn.compact
    def __call__(self, inputs: Float[Array, "*n H"]) -> Float[Array, "*n H"]:
        width = inputs.shape[-1]
        mean_square = inputs**2 @ jnp.full((width, 1), 1 / width)
        gain = self.param("gain", nn.initializers.ones, (width,))
        return gain * inputs * jax.lax.rsqrt(mean_square + 1e-6)


class PairCritic(nn.Module):
    """Values of subtasks, given the sums of the pair embeddings of those who work on them: two layers.

    The value of an allocation is the sum over active subtasks.
    """

    width: int
    hidden: int
    """Width of the last hidden layer, which is computed for every allocation."""

    @nn.compact
    def __call__(
        self,
        codes: Float[Array, "*b A M H"],
        subtasks: Float[Array, "*b M H2"],
        active: Bool[Array, "*b M"],
        teams: Callable[[Float[Array, "*b A M H"]], Float[Array, "*b P M H"]],
    ) -> Float[Array, "*b P M"]:
        """`teams` adds up embeddings, of P teams for every subtask."""
        codes = Dense(self.width, use_bias=False, name="team")(codes)
        base = Dense(self.width, name="subtask")(subtasks)
        hidden = nn.relu(Scaled(name="norm")(teams(codes) + base[..., None, :, :]))
        hidden = nn.relu(Dense(self.hidden, name="hidden")(hidden))
        values = Dense(1, name="value")(hidden)[..., 0]
        return jnp.where(active[..., None, :], values, 0)


def teams_with_and_without(codes: Float[Array, "A M H"], allocation: Int[Array, "A"]) -> Float[Array, "1+2*A M H"]:
    """The sums per subtask of an allocation as it is, with each agent added, and with each agent taken away."""
    now = sum_per_subtask(codes, allocation[None])
    own = allocation_matrix(allocation, codes.shape[-2])[..., None] * codes
    return jnp.concatenate([now, now + codes - own, now - own])
