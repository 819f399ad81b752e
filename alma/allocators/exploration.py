"""How allocations are explored in training: the interface of exploration schemes, and the paper's own scheme.

The others are `alma/allocators/noise.py` and `alma/allocators/thompson.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.allocator import AllocationExploration
from alma.allocators.aql import AllocatorBatch, CandidateCounts, best_of, draw_candidates
from alma.allocators.networks import AllocatorNetworks
from alma.allocators.proposal import allowed_subtasks
from alma.learning.learner import Metrics
from alma.nn.params import Params
from alma.play.decisions import apply_where
from alma.play.situation import Situation
from alma.task.choice import choose_uniformly
from alma.task.view import View


@runtime_checkable
class Explorer(Protocol):
    """A scheme of exploring allocations. Inputs are those of N environments; the networks are the allocator's own."""

    def init(
        self, key: PRNGKeyArray, networks: AllocatorNetworks, view: View, previous: Int[Array, "N A"]
    ) -> dict[str, Params]:
        """The initial parameters of what the scheme learns besides proposal network and critic, by name; may be empty.

        They become part of the allocator's parameters, and so have target networks and are in checkpoints. Names in
        `OWN_OPTIMISER` (`alma/learning/learner.py`) have optimisers of their own, all others that of the critic.
        """

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
        """New allocations where a decision is due; the current ones elsewhere."""

    def loss(
        self, networks: AllocatorNetworks, params: Params, target: Params, batch: AllocatorBatch
    ) -> tuple[Float[Array, ""], Metrics]:
        """The loss of the scheme's own parameters, which is added to that of the allocator, and metrics."""


class LearnsNothing:
    """The part of `Explorer` that is the same for all schemes without parameters of their own."""

    def init(
        self, key: PRNGKeyArray, networks: AllocatorNetworks, view: View, previous: Int[Array, "N A"]
    ) -> dict[str, Params]:
        return {}

    def loss(
        self, networks: AllocatorNetworks, params: Params, target: Params, batch: AllocatorBatch
    ) -> tuple[Float[Array, ""], Metrics]:
        return jnp.float32(0), {}


Draw: TypeAlias = Callable[[PRNGKeyArray, Any, View], Int[Array, "n P A"]]
"""Draws candidates: (key, encoded states, views) -> candidates."""


def best_or_first(
    networks: AllocatorNetworks,
    params: Params,
    draw_key: PRNGKeyArray,
    first_key: PRNGKeyArray,
    situations: Situation,
    due: Bool[Array, "N"],
    draw: Draw,
    chance: Float[Array, ""],
) -> Int[Array, "N A"]:
    """Where due, the candidate that the critic values most or, with probability `chance`, the first one (epsilon_p);
    the current allocation elsewhere."""
    view, previous = situations.view, jnp.asarray(situations.allocation)

    def fresh(portion: Int[Array, ""], inputs: tuple[View, Int[Array, "n A"]]) -> Any:
        encoded = networks.encode(params, *inputs)
        drawn = draw(jax.random.fold_in(draw_key, portion), encoded, inputs[0])
        return best_of(drawn, networks.values(params, encoded, drawn)), drawn[:, 0]

    best, first = apply_where(due, fresh, (view, previous), (previous, previous))
    takes_first = jax.random.uniform(first_key, due.shape) < chance
    return jnp.where(takes_first[:, None], first, best)


@dataclass(frozen=True)
class EpsilonGreedy(LearnsNothing):
    """The paper's scheme: the first proposal instead of the best one, then random subtasks, both with some
    probability."""

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
        draw_key, first_key, subtask_key = jax.random.split(key, 3)

        def draw(key: PRNGKeyArray, encoded: Any, view: View) -> Int[Array, "n P A"]:
            return draw_candidates(networks, params, key, encoded, view, candidates)

        chosen = best_or_first(networks, params, draw_key, first_key, situations, due, draw, exploration.proposal)
        chosen = explore_subtasks(subtask_key, chosen, situations.view, exploration.subtask)
        return jnp.where(due[:, None], chosen, situations.allocation)


def explore_subtasks(
    key: PRNGKeyArray, chosen: Int[Array, "N A"], view: View, chance: Float[Array, ""]
) -> Int[Array, "N A"]:
    """Give each agent a random active subtask with probability `chance` (epsilon_r)."""
    explore_key, subtask_key = jax.random.split(key)
    explores = jax.random.uniform(explore_key, chosen.shape) < chance
    return jnp.where(explores, choose_uniformly(subtask_key, allowed_subtasks(view, chosen.shape[-1])), chosen)
