"""The paper's critic of allocations: attention over all entities, each labelled with its subtask."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from alma.nn.attention import MultiHead
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
        things = jnp.broadcast_to(
            view.subtask[..., None, agents:], (*allocations.shape[:-1], view.subtask.shape[-1] - agents)
        )
        belongs = allocation_matrix(jnp.concatenate([allocations, things], axis=-1), subtasks) * present[..., None]
        team = jnp.sum(belongs[..., :agents, :], axis=-2)
        others = jnp.sum(belongs[..., agents:, :], axis=-2)
        names = self.param("subtask", nn.initializers.normal(0.1), (subtasks, self.width))
        # What is added to an entity depends only on its subtask, so it is computed once per subtask.
        counts = Dense(self.width, name="counts")(jnp.stack([team, others], axis=-1))
        entities = Dense(self.width, name="entity")(view.entities)
        inputs = nn.relu(entities[..., None, :, :] + belongs @ (names + 0.2 * counts))
        attends = jnp.broadcast_to(
            present[..., None, :] & present[..., :agents, None], (*allocations.shape, view.present.shape[-1])
        )
        relations = view.relations[..., None, :, :, :] if self.use_relations else None
        attended = nn.relu(MultiHead(self.width, self.heads)(inputs, attends, relations))
        team_size = jnp.maximum(jnp.sum(view.present[..., :agents], axis=-1), 1)[..., None, None]
        return Dense(1, name="value")(jnp.sum(attended, axis=-2) / team_size)[..., 0]
