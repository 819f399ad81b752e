"""The paper's proposal: an autoregressive pointer network over subtasks."""

from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.allocators.proposal import UNROLLED, Index, allowed_subtasks
from alma.nn.attention import MultiHead
from alma.nn.layers import Dense, lecun_normal_or_empty
from alma.nn.masks import allocation_matrix
from alma.task.view import View, subtask_of_entities


class PointerProposalEncoding(NamedTuple):
    """A state as the pointer network encodes it.

    The logit of a subtask is the product of its embedding with the agent's. Whenever an agent takes a subtask, a vector
    is added to the subtask's embedding. The memory holds these vectors only: writing and reading a copy of all
    embeddings for each of many allocations would be slow.
    """

    agents: Float[Array, "*b A H"]
    """Embeddings of agents."""
    subtasks: Float[Array, "*b M H"]
    """Embeddings of subtasks before any agent has taken one."""
    affinity: Float[Array, "*b A M"]
    """Products of the two, plus the contribution of relations between agents and the entities of a subtask."""
    things: Float[Array, "*b M"]
    """Number of non-agent entities of each subtask."""
    allowed: Bool[Array, "*b A M"]
    counts_kernel: Float[Array, "2 H"]
    counts_bias: Float[Array, "H"]
    update_kernel: Float[Array, "2*H H"]
    update_bias: Float[Array, "H"]

    @property
    def memory_grows(self) -> bool:
        return True

    def start(self) -> Any:
        return ()

    def logits(self, agent: Index, memory: Any) -> Float[Array, "*b M"]:
        pointed, of_team = self.without_team(agent)
        for taken, _, likes in memory:
            pointed += taken * (likes[..., agent, None] + of_team)
        return pointed / self.agents.shape[-1] ** 0.5

    def remember(self, agent: Index, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        chosen = jnp.einsum("...m,...mh->...h", taken, self.subtasks)
        for earlier, addition, _ in memory:
            chosen += jnp.sum(taken * earlier, axis=-1, keepdims=True) * addition
        addition = self.addition(agent, chosen)
        likes = jnp.einsum("...h,...ah->...a", addition, self.agents)
        return (*memory, (taken, addition, likes))

    def without_team(self, agent: Index) -> tuple[Float[Array, "*b M"], Float[Array, "*b 1"]]:
        """The part of the logits that does not depend on who has chosen before, before scaling, and what each agent
        that has chosen a subtask adds by being counted."""
        # The logits are agent @ (subtask + counts @ kernel + bias), expanded into terms: those that do not depend on
        # the allocation are computed once for all allocations.
        who = self.agents[..., agent, :]
        of_things, of_team = jnp.split(0.2 * who @ self.counts_kernel.T, 2, axis=-1)
        pointed = self.affinity[..., agent, :] + self.things * of_things
        return pointed + (who @ self.counts_bias)[..., None], of_team

    def addition(self, agent: Index, chosen: Float[Array, "*b H"]) -> Float[Array, "*b H"]:
        """What is added to the embedding of the subtask that an agent has chosen."""
        of_subtask, of_agent = jnp.split(self.update_kernel, 2)
        who = nn.relu(self.agents[..., agent, :]) @ of_agent + self.update_bias
        return nn.relu(chosen) @ of_subtask + who


class SummedPointerEncoding(PointerProposalEncoding):
    """The same for many agents: the memory holds the sums of what was added to each subtask.

    With few agents it is slower to keep these sums for every allocation than the additions themselves. But the number
    of additions that have to be looked at grows with the square of the number of agents.
    """

    @property
    def memory_grows(self) -> bool:
        return False

    def start(self) -> Any:
        return jnp.zeros_like(self.subtasks), jnp.zeros_like(self.things)

    def logits(self, agent: Index, memory: Any) -> Float[Array, "*b M"]:
        added, team = memory
        pointed, of_team = self.without_team(agent)
        pointed += jnp.einsum("...mh,...h->...m", added, self.agents[..., agent, :]) + team * of_team
        return pointed / self.agents.shape[-1] ** 0.5

    def remember(self, agent: Index, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        added, team = memory
        chosen = jnp.einsum("...m,...mh->...h", taken, self.subtasks + added)
        return added + taken[..., None] * self.addition(agent, chosen)[..., None, :], team + taken


class PointerProposal(nn.Module):
    """The paper's proposal: an autoregressive pointer network over subtasks.

    With relations, the logit of an agent h for a subtask g is h (g + U r) instead of h g, where r is the sum of the
    agent's relations to the entities of the subtask: the way attention keys are extended with relations.
    """

    width: int = 128
    heads: int = 4
    use_relations: bool = False
    """Whether relations between agents and entities contribute to the logits."""

    @nn.compact
    def __call__(self, view: View, previous: Int[Array, "*b A"]) -> PointerProposalEncoding:
        agents, count = previous.shape[-1], view.active.shape[-1]
        subtask = subtask_of_entities(view, previous)
        belongs = allocation_matrix(subtask, count) * view.present[..., None]
        names = self.param("subtask", nn.initializers.normal(0.1), (count, self.width))
        embedded = Dense(self.width, name="entity")(view.entities) + belongs @ names
        # A subtask is encoded from its own entities only; agents are added when they take it.
        things, of_things = embedded[..., agents:, :], belongs[..., agents:, :]
        together = jnp.einsum("...em,...fm->...ef", of_things, of_things) > 0
        attended = MultiHead(self.width, self.heads)(nn.relu(things), together)
        who, subtasks = embedded[..., :agents, :], jnp.einsum("...eh,...em->...mh", attended, of_things)
        affinity = jnp.einsum("...ah,...mh->...am", who, subtasks)
        if self.use_relations:
            near = jnp.einsum("...aer,...em->...amr", view.relations[..., agents:, :], of_things)
            kernel = self.param("relation", lecun_normal_or_empty, (near.shape[-1], self.width))
            affinity += jnp.einsum("...ar,...amr->...am", who @ kernel.T, near)
        lecun, zeros = nn.initializers.lecun_normal(), nn.initializers.zeros
        kind = SummedPointerEncoding if agents > UNROLLED else PointerProposalEncoding
        return kind(
            agents=who,
            subtasks=subtasks,
            affinity=affinity,
            things=jnp.sum(of_things, axis=-2),
            allowed=allowed_subtasks(view, agents),
            counts_kernel=self.param("counts_kernel", lecun, (2, self.width)),
            counts_bias=self.param("counts_bias", zeros, (self.width,)),
            update_kernel=self.param("update_kernel", lecun, (2 * self.width, self.width)),
            update_bias=self.param("update_bias", zeros, (self.width,)),
        )
