"""The paper's proposal: an autoregressive pointer network over subtasks."""

from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.allocators.proposal import allowed_subtasks
from alma.nn.attention import MultiHead
from alma.nn.layers import Dense, of_any_size
from alma.nn.masks import allocation_matrix
from alma.task.view import View, subtask_of_entities


class PointerChoices(NamedTuple):
    """Agents point at subtasks.

    A subtask is what it was encoded as, and what was added to it whenever an agent took it. Memory keeps the additions
    only: there are many allocations, and a copy of all subtasks for every one of them is a lot to write and read.
    """

    agents: Float[Array, "*b A H"]
    subtasks: Float[Array, "*b M H"]
    liking: Float[Array, "*b A M"]
    """Products of the two, and what relations between agents and entities of a subtask add to them."""
    things: Float[Array, "*b M"]
    """Non-agent entities of each subtask."""
    allowed: Bool[Array, "*b A M"]
    counts_kernel: Float[Array, "2 H"]
    counts_bias: Float[Array, "H"]
    update_kernel: Float[Array, "2*H H"]
    update_bias: Float[Array, "H"]

    def start(self) -> Any:
        return ()

    def logits(self, agent: int, memory: Any) -> Float[Array, "*b M"]:
        # The agent points at subtask + counts @ kernel + bias, one after the other: what it makes of all that does not
        # depend on the allocation is the same for all.
        who = self.agents[..., agent, :]
        of_things, of_team = jnp.split(0.2 * who @ self.counts_kernel.T, 2, axis=-1)
        pointed = self.liking[..., agent, :] + self.things * of_things
        pointed += (who @ self.counts_bias)[..., None]
        for taken, _, likes in memory:
            pointed += taken * (likes[..., agent, None] + of_team)
        return pointed / who.shape[-1] ** 0.5

    def remember(self, agent: int, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        chosen = jnp.einsum("...m,...mh->...h", taken, self.subtasks)
        for earlier, addition, _ in memory:
            chosen += jnp.sum(taken * earlier, axis=-1, keepdims=True) * addition
        of_subtask, of_agent = jnp.split(self.update_kernel, 2)
        who = nn.relu(self.agents[..., agent, :]) @ of_agent + self.update_bias
        addition = nn.relu(chosen) @ of_subtask + who
        likes = jnp.einsum("...h,...ah->...a", addition, self.agents)
        return (*memory, (taken, addition, likes))


class PointerProposal(nn.Module):
    """The paper's proposal: an autoregressive pointer network over subtasks.

    With relations, an agent h points at g + U r, not at g alone, where r adds up its relations to the entities of the
    subtask: as keys of attention are extended.
    """

    width: int = 128
    heads: int = 4
    use_relations: bool = False

    @nn.compact
    def __call__(self, view: View, previous: Int[Array, "*b A"]) -> PointerChoices:
        agents, count = previous.shape[-1], view.active.shape[-1]
        subtask = subtask_of_entities(view, previous)
        belongs = allocation_matrix(subtask, count) * view.present[..., None]
        names = self.param("subtask", nn.initializers.normal(0.1), (count, self.width))
        embedded = Dense(self.width, name="entity")(view.entities) + belongs @ names
        # A subtask is encoded from its own entities alone: agents come in only when they are given to it.
        things, of_things = embedded[..., agents:, :], belongs[..., agents:, :]
        together = jnp.einsum("...em,...fm->...ef", of_things, of_things) > 0
        attended = MultiHead(self.width, self.heads)(nn.relu(things), together)
        who, subtasks = embedded[..., :agents, :], jnp.einsum("...eh,...em->...mh", attended, of_things)
        liking = jnp.einsum("...ah,...mh->...am", who, subtasks)
        if self.use_relations:
            near = jnp.einsum("...aer,...em->...amr", view.relations[..., agents:, :], of_things)
            kernel = self.param("relation", of_any_size, (near.shape[-1], self.width))
            liking += jnp.einsum("...ar,...amr->...am", who @ kernel.T, near)
        lecun, zeros = nn.initializers.lecun_normal(), nn.initializers.zeros
        return PointerChoices(
            agents=who,
            subtasks=subtasks,
            liking=liking,
            things=jnp.sum(of_things, axis=-2),
            allowed=allowed_subtasks(view, agents),
            counts_kernel=self.param("counts_kernel", lecun, (2, self.width)),
            counts_bias=self.param("counts_bias", zeros, (self.width,)),
            update_kernel=self.param("update_kernel", lecun, (2 * self.width, self.width)),
            update_bias=self.param("update_bias", zeros, (self.width,)),
        )
