"""The paper's critic of allocations: attention over all entities, each labelled with its subtask."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from alma.nn.attention import Affine, MultiHead
from alma.nn.layers import Dense
from alma.nn.masks import allocation_matrix
from alma.task.view import View


class AttentionCritic(nn.Module):
    """The values of allocations; attention is across subtasks."""

    width: int = 128
    heads: int = 4
    use_relations: bool = False
    """Whether relations are added to keys and values of the attention."""

    @nn.compact
    def __call__(self, view: View, allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P"]:
        agents, subtasks = allocations.shape[-1], view.active.shape[-1]
        present = view.present[..., None, :]
        names = self.param("subtask", nn.initializers.normal(0.1), (subtasks, self.width))
        of_counts, shift = Affine(2, self.width, name="counts")()  # counts of agents and of other entities
        entities = Dense(self.width, name="entity")(view.entities)
        belongs = allocation_matrix(allocations, subtasks) * present[..., :agents, None]
        things_belong = allocation_matrix(view.subtask[..., agents:], subtasks) * view.present[..., agents:, None]
        # What is added to an entity depends only on its subtask; only the number of agents in it depends on the
        # allocation, and all else is computed once for all allocations.
        others = jnp.sum(things_belong, axis=-2)[..., None]
        label = names + 0.2 * (others * of_counts[1] + shift)
        things = entities[..., agents:, :] + jnp.einsum("...tm,...mh->...th", things_belong, label)
        team = jnp.sum(belongs, axis=-2)

        def with_team(rows: Float[Array, "*#b N H"], members: Float[Array, "*#b N M"]) -> Float[Array, "*#b N H"]:
            size = jnp.einsum("...pnm,...pm->...pn", members, team)
            return nn.relu(rows + 0.2 * size[..., None] * of_counts[0])

        allocated = entities[..., None, :agents, :] + jnp.einsum("...pam,...mh->...pah", belongs, label)
        of_things = with_team(things[..., None, :, :], things_belong[..., None, :, :])
        inputs = jnp.concatenate([with_team(allocated, belongs), of_things], axis=-2)
        attends = jnp.broadcast_to(
            present[..., None, :] & present[..., :agents, None], (*allocations.shape, view.present.shape[-1])
        )
        relations = view.relations[..., None, :, :, :] if self.use_relations else None
        attended = nn.relu(MultiHead(self.width, self.heads)(inputs, attends, relations))
        team_size = jnp.maximum(jnp.sum(view.present[..., :agents], axis=-1), 1)[..., None, None]
        return Dense(1, name="value")(jnp.sum(attended, axis=-2) / team_size)[..., 0]
