"""Exploration of allocations by noise on the logits of the proposal network.

Random subtasks for single agents (the paper's scheme) break up what an allocation has planned for the others. Here the
proposal network draws whole allocations under logits with Gaussian noise: agents that choose later take into account
what the noise made the earlier ones choose, and the critic still picks the best of the candidates. All candidates of a
decision share their noise, so that they differ from usual ones together, not each at random.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.allocator import AllocationExploration
from alma.allocators.aql import CandidateCounts, with_variations
from alma.allocators.exploration import LearnsNothing, best_or_first
from alma.allocators.networks import AllocatorNetworks
from alma.allocators.proposal import Index, ProposalEncoding, draw_proposals
from alma.nn.params import Params
from alma.play.situation import Situation
from alma.task.view import View


class NoisyEncoding(NamedTuple):
    """A proposal network's encoding of a state, with noise added to its logits."""

    encoding: ProposalEncoding
    noise: Float[Array, "*b A M"]

    @property
    def allowed(self) -> Bool[Array, "*b A M"]:
        return self.encoding.allowed

    @property
    def memory_grows(self) -> bool:
        return self.encoding.memory_grows

    def start(self) -> Any:
        return self.encoding.start()

    def logits(self, agent: Index, memory: Any) -> Float[Array, "*b M"]:
        return self.encoding.logits(agent, memory) + self.noise[..., agent, :]

    def remember(self, agent: Index, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        return self.encoding.remember(agent, memory, taken)


@dataclass(frozen=True)
class NoisyProposals(LearnsNothing):
    """Proposals under noisy logits; the first of them instead of the best one with some probability."""

    deviation: float
    """Standard deviation of the noise at the start, when `AllocationExploration.subtask` is 1; it falls with that."""

    def allocate(
        self,
        networks: AllocatorNetworks,
        params: Params,
        key: PRNGKeyArray,
        situations: Situation,
        due: Bool[Array, "N"],
        candidates: CandidateCounts,
        exploration: AllocationExploration,
    ) -> Int[Array, "N A"]:
        draw_key, first_key = jax.random.split(key)

        def draw(key: PRNGKeyArray, encoded: Any, view: View) -> Int[Array, "n P A"]:
            noise_key, proposal_key, variation_key = jax.random.split(key, 3)
            encoding = networks.encode_for_proposal(params, encoded)
            noise = self.deviation * exploration.subtask * jax.random.normal(noise_key, encoding.allowed.shape)
            drawn = draw_proposals(proposal_key, NoisyEncoding(encoding, noise), candidates.proposals)
            return with_variations(variation_key, drawn, view, candidates)

        return best_or_first(networks, params, draw_key, first_key, situations, due, draw, exploration.proposal)
