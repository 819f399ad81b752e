"""The networks of an allocator: a state is encoded once, then allocations are proposed and scored."""

import abc
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.critic import AttentionCritic
from alma.allocators.pairs import PairCritic, PairEncoder, PairProposal
from alma.allocators.pointer import PointerProposal
from alma.allocators.proposal import Choices, allowed_subtasks, log_probability, propose
from alma.nn.masks import select_features
from alma.nn.popart import Head
from alma.task.view import View

Params = Any


@dataclass(frozen=True)
class AllocatorNetworks(abc.ABC):
    """A proposal, and a critic whose head makes values of its outputs."""

    head: Head

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"]) -> Params: ...

    @abc.abstractmethod
    def encode(self, params: Params, view: View, previous: Int[Array, "*b A"]) -> Any:
        """Everything that is the same for all allocations and for both networks."""

    @abc.abstractmethod
    def choices(self, params: Params, encoded: Any) -> Choices:
        """The state as the proposal sees it."""

    @abc.abstractmethod
    def raw_values(self, params: Params, encoded: Any, allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P"]:
        """The critic's outputs; the head makes values of them, in the same order."""

    def values(self, params: Params, encoded: Any, allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P"]:
        return self.head.value(params["head"], self.raw_values(params, encoded, allocations))

    def proposals(self, params: Params, key: PRNGKeyArray, encoded: Any, count: int) -> Int[Array, "*b P A"]:
        """Draw allocations."""
        draw = jax.vmap(propose, in_axes=(0, None), out_axes=-2)
        return draw(jax.random.split(key, count), self.choices(params, encoded))

    def log_probabilities(
        self, params: Params, encoded: Any, allocations: Int[Array, "*b P A"]
    ) -> tuple[Float[Array, "*b P"], Float[Array, "*b P"]]:
        """How probable the proposal finds allocations, and its entropy along the way to each, summed over agents."""
        of_one = partial(log_probability, self.choices(params, encoded))
        return jax.vmap(of_one, in_axes=-2, out_axes=-1)(allocations)


class PairState(NamedTuple):
    """A state as codes of (agent, subtask) pairs."""

    codes: Float[Array, "*b A M H"]
    subtasks: Float[Array, "*b M H2"]
    allowed: Bool[Array, "*b A M"]
    active: Bool[Array, "*b M"]


@dataclass(frozen=True)
class PairAllocator(AllocatorNetworks):
    """Ours: one encoder of (agent, subtask) pairs, which the critic trains and the proposal looks at."""

    width: int
    choice_width: int
    things: int
    """The most non-agent entities of a subtask."""
    features: tuple[int, ...]
    """Of entities, that are looked at."""

    @property
    def encoder(self) -> Any:
        return PairEncoder(self.width, self.things)

    @property
    def proposal(self) -> Any:
        return PairProposal(self.choice_width)

    @property
    def critic(self) -> Any:
        return PairCritic(self.width, self.choice_width)

    def init(self, key: PRNGKeyArray, view: View, previous: Int[Array, "*b A"]) -> Params:
        encoder_key, proposal_key, critic_key = jax.random.split(key, 3)
        seen = select_features(self.features, view)
        encoder = self.encoder.init(encoder_key, seen, previous)
        codes, subtasks = self.encoder.apply(encoder, seen, previous)
        return {
            "encoder": encoder,
            "proposal": self.proposal.init(proposal_key, codes, subtasks, allowed_subtasks(view, previous.shape[-1])),
            "critic": self.critic.init(critic_key, codes, subtasks, view.active, previous[..., None, :]),
            "head": self.head.init(),
        }

    def encode(self, params: Params, view: View, previous: Int[Array, "*b A"]) -> PairState:
        codes, subtasks = self.encoder.apply(params["encoder"], select_features(self.features, view), previous)
        return PairState(codes, subtasks, allowed_subtasks(view, previous.shape[-1]), view.active)

    def choices(self, params: Params, encoded: PairState) -> Choices:
        codes, subtasks = jax.lax.stop_gradient((encoded.codes, encoded.subtasks))
        return self.proposal.apply(params["proposal"], codes, subtasks, encoded.allowed)

    def raw_values(self, params: Params, encoded: PairState, allocations: Int[Array, "*b P A"]) -> Float[Array, "*b P"]:
        return self.critic.apply(params["critic"], encoded.codes, encoded.subtasks, encoded.active, allocations)


class PointerState(NamedTuple):
    """A state as it is: the paper's networks share nothing."""

    view: View
    previous: Int[Array, "*b A"]


@dataclass(frozen=True)
class PointerAllocator(AllocatorNetworks):
    """The paper's: a pointer network, and a critic that attends to all entities."""

    width: int
    heads: int
    features: tuple[int, ...]
    """Of entities, that are looked at."""
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
        seen = select_features(self.features, view)
        return {
            "proposal": self.proposal.init(proposal_key, seen, previous),
            "critic": self.critic.init(critic_key, seen, previous[..., None, :]),
            "head": self.head.init(),
        }

    def encode(self, params: Params, view: View, previous: Int[Array, "*b A"]) -> PointerState:
        return PointerState(select_features(self.features, view), previous)

    def choices(self, params: Params, encoded: PointerState) -> Choices:
        return self.proposal.apply(params["proposal"], encoded.view, encoded.previous)

    def raw_values(
        self, params: Params, encoded: PointerState, allocations: Int[Array, "*b P A"]
    ) -> Float[Array, "*b P"]:
        return self.critic.apply(params["critic"], encoded.view, allocations)
