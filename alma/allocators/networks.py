"""The networks of an allocator: a state is encoded once, then allocations are proposed and valued."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.critic import AttentionCritic
from alma.allocators.pairs import PairCritic, PairEncoder, PairProposal, sum_per_subtask, teams_with_and_without
from alma.allocators.pointer import PointerProposal
from alma.allocators.proposal import ProposalEncoding, allowed_subtasks, draw_proposals, log_probability
from alma.allocators.tabulated import tabulate_if_small
from alma.nn.params import Params
from alma.nn.popart import Head
from alma.task.view import View, select_features


@dataclass(frozen=True)
class AllocatorNetworks(abc.ABC):
    """A proposal network, a critic, and the head that turns the critic's raw outputs into values."""

    head: Head

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"]) -> Params:
        """Initial parameters."""

    @abc.abstractmethod
    def encode(self, params: Params, view: View, previous: Int[Array, "*b A"]) -> Any:
        """The encoding of a state that both networks start from: what does not depend on the allocation they value."""

    @abc.abstractmethod
    def encode_for_proposal(self, params: Params, encoded: Any) -> ProposalEncoding:
        """The proposal network's encoding of a state, which it draws allocations from."""

    @abc.abstractmethod
    def raw_values(self, params: Params, encoded: Any, allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P"]:
        """The critic's raw outputs. The head, which is monotonic, turns them into values."""

    def values(self, params: Params, encoded: Any, allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P"]:
        """The critic's values of allocations."""
        return self.head.value(params["head"], self.raw_values(params, encoded, allocations))

    def values_of_moves(
        self, params: Params, encoded: Any, allocation: Int[Array, "A"], allowed: Bool[Array, "A M"]
    ) -> Float[Array, "A M"]:
        """The critic's value after moving one agent to a subtask, for every agent and subtask; -inf if not allowed."""
        agents, subtasks = allowed.shape
        moved = jnp.eye(agents, dtype=bool)[:, None, :]
        every = jnp.where(moved, jnp.arange(subtasks)[:, None], allocation).reshape(-1, agents)
        values = self.values(params, encoded, every).reshape(agents, subtasks)
        return jnp.where(allowed, values, -jnp.inf)

    def proposals(self, params: Params, key: PRNGKeyArray, encoded: Any, count: int) -> Int[Array, "*b P A"]:
        """Draw `count` allocations from the proposal network."""
        return draw_proposals(key, self.encode_for_proposal(params, encoded), count)

    def log_probabilities(
        self, params: Params, encoded: Any, allocations: Int[Array, "*b P A"]
    ) -> tuple[Float[Array, "*b P"], Float[Array, "*b P"]]:
        """Log-probabilities of allocations under the proposal network, and its entropy along the prefixes of each."""
        of_one = partial(log_probability, self.encode_for_proposal(params, encoded))
        return jax.vmap(of_one, in_axes=-2, out_axes=-1)(allocations)


class PairEncoding(NamedTuple):
    """A state encoded as embeddings of (agent, subtask) pairs and of subtasks."""

    codes: Float[Array, "*b A M H"]
    subtasks: Float[Array, "*b M H2"]
    allowed: Bool[Array, "*b A M"]
    active: Bool[Array, "*b M"]


@dataclass(frozen=True)
class PairNetworks(AllocatorNetworks):
    """Our networks: an encoder of (agent, subtask) pairs, trained by the critic's loss and shared with the proposal."""

    width: int
    """Width of the encoder."""
    choice_width: int
    """Width of the layers that are computed for every allocation."""
    things: int
    """The most non-agent entities of any one subtask."""
    features: tuple[int, ...]
    """Indices of the entity features that the networks see."""
    agents: int | None = None
    """The most agents in training, for summaries of larger teams; None: no bound."""
    subtasks: int | None = None
    """The most subtasks in training."""

    @property
    def encoder(self) -> Any:
        return PairEncoder(self.width, self.things, self.agents, self.subtasks)

    @property
    def proposal(self) -> Any:
        return PairProposal(self.choice_width)

    @property
    def critic(self) -> Any:
        return PairCritic(self.width, self.choice_width)

    def init(self, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"]) -> Params:
        encoder_key, proposal_key, critic_key = jax.random.split(key, 3)
        seen = select_features(view, self.features)
        encoder = self.encoder.init(encoder_key, seen, previous)
        codes, subtasks = self.encoder.apply(encoder, seen, previous)
        return {
            "encoder": encoder,
            "proposal": self.proposal.init(proposal_key, codes, subtasks, allowed_subtasks(view, previous.shape[-1])),
            "critic": self.critic.init(
                critic_key, codes, subtasks, view.active, partial(sum_per_subtask, allocations=previous[..., None, :])
            ),
            "head": self.head.init(),
        }

    def encode(self, params: Params, view: View, previous: Int[Array, "*b A"]) -> PairEncoding:
        codes, subtasks = self.encoder.apply(params["encoder"], select_features(view, self.features), previous)
        return PairEncoding(codes, subtasks, allowed_subtasks(view, previous.shape[-1]), view.active)

    def encode_for_proposal(self, params: Params, encoded: PairEncoding) -> ProposalEncoding:
        codes, subtasks = jax.lax.stop_gradient((encoded.codes, encoded.subtasks))
        return self.proposal.apply(params["proposal"], codes, subtasks, encoded.allowed)

    def raw_values(
        self, params: Params, encoded: PairEncoding, allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        return jnp.sum(self._raw_values(params, encoded, partial(sum_per_subtask, allocations=allocations)), axis=-1)

    def values_of_moves(
        self, params: Params, encoded: PairEncoding, allocation: Int[Array, "A"], allowed: Bool[Array, "A M"]
    ) -> Float[Array, "A M"]:
        # A move changes the values of two subtasks only: the one that an agent leaves and the one that it goes to.
        agents, subtasks = allowed.shape
        teams = partial(teams_with_and_without, allocation=allocation)
        now, added, removed = jnp.split(self._raw_values(params, encoded, teams), [1, 1 + agents])
        own = jnp.arange(subtasks) == allocation[:, None]
        leaving = jnp.sum(jnp.where(own, removed - now, 0), axis=-1, keepdims=True)
        raw = jnp.sum(now) + jnp.where(own, 0, leaving + added - now)
        return jnp.where(allowed, self.head.value(params["head"], raw), -jnp.inf)

    def _raw_values(
        self, params: Params, encoded: PairEncoding, teams: Callable[[Array], Array]
    ) -> Float[Array, "*b P M"]:
        """The critic's raw outputs for every subtask."""
        return self.critic.apply(params["critic"], encoded.codes, encoded.subtasks, encoded.active, teams)


PORTION = 256
"""The attention critic values about this number of allocations at a time: what it computes for more does not fit into
the caches of a processor, and takes up to twice as long."""


class PointerEncoding(NamedTuple):
    """A state that is not encoded yet: the paper's two networks share no encoder."""

    view: View
    previous: Int[Array, "*b A"]


@dataclass(frozen=True)
class PointerNetworks(AllocatorNetworks):
    """The paper's networks: a pointer network as proposal, and a critic that attends to all entities."""

    width: int
    heads: int
    features: tuple[int, ...]
    """Indices of the entity features that the networks see."""
    use_relations: bool = False
    """Whether both networks see relations between agents and entities."""

    @property
    def proposal(self) -> Any:
        return PointerProposal(self.width, self.heads, self.use_relations)

    @property
    def critic(self) -> Any:
        return AttentionCritic(self.width, self.heads, self.use_relations)

    def init(self, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"]) -> Params:
        proposal_key, critic_key = jax.random.split(key)
        seen = select_features(view, self.features)
        return {
            "proposal": self.proposal.init(proposal_key, seen, previous),
            "critic": self.critic.init(critic_key, seen, previous[..., None, :]),
            "head": self.head.init(),
        }

    def encode(self, params: Params, view: View, previous: Int[Array, "*b A"]) -> PointerEncoding:
        return PointerEncoding(select_features(view, self.features), previous)

    def encode_for_proposal(self, params: Params, encoded: PointerEncoding) -> ProposalEncoding:
        return tabulate_if_small(self.proposal.apply(params["proposal"], encoded.view, encoded.previous))

    def values(
        self, params: Params, encoded: PointerEncoding, allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        values, (*batch, count, _) = super().values, allocations.shape
        if len(batch) != 1 or batch[0] * count <= 2 * PORTION:
            return values(params, encoded, allocations)
        size = max(1, PORTION // count)
        return jax.lax.map(lambda states: values(params, *states), (encoded, allocations), batch_size=size)

    def raw_values(
        self, params: Params, encoded: PointerEncoding, allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        return self.critic.apply(params["critic"], encoded.view, allocations)
