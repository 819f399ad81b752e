"""A search for the allocation that the critic values most, to measure what is lost by choosing among candidates."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.learned import LearnedAllocator
from alma.allocators.networks import AllocatorNetworks
from alma.allocators.proposal import allowed_subtasks
from alma.nn.params import Params
from alma.play.situation import Candidates, Situation
from alma.task.view import NOBODY, Allocation, View

ALL_AT_MOST = 10_000
"""Up to this number of possible allocations, the search values all of them."""


@dataclass(frozen=True)
class SearchAllocator:
    """Maximises the critic of a learned allocator over all allocations, not only over its candidates.

    Values every allocation if there are at most `all_at_most`; otherwise improves the best proposals move by move.
    """

    learned: LearnedAllocator
    all_at_most: int = ALL_AT_MOST

    allocates: ClassVar[bool] = True
    needs_state: ClassVar[bool] = False
    has_critic: ClassVar[bool] = True

    def greedy(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Allocation:
        networks = self.learned.networks
        view, previous = situation.view, jnp.asarray(situation.allocation)
        best = search_all(networks, params, view, previous, self.all_at_most)
        if view.active.shape[-1] ** len(previous) <= self.all_at_most:  # static upper bound
            return best
        counts = self.learned.played_candidates
        improved = search_nearby(networks, params, key, view, previous, counts.proposals)
        return jnp.where(count_allocations(view, len(previous)) <= self.all_at_most, best, improved)

    def explain_allocation(
        self, params: Params, key: PRNGKeyArray, situation: Situation, taken: Allocation
    ) -> Candidates:
        """The allocation found, and the candidates that the learned allocator would have chosen from."""
        return self.learned.explain_allocation(params, key, situation, taken)


BLOCK = 256
"""Number of allocations that are valued in one batch."""

MOVES = 20
"""Maximum number of moves for each agent."""

CLIMBS = 2
"""Number of proposals that are improved: those of highest value."""

TOLERANCE = 1e-5
"""Relative gain below which a move is taken for rounding."""


def count_allocations(view: View, agents: int) -> Float[Array, ""]:
    """The number of allocations of present agents to active subtasks; a float, since it may be huge."""
    return jnp.sum(view.active).astype(jnp.float32) ** jnp.sum(view.present[:agents])


def search_all(
    networks: AllocatorNetworks, params: Params, view: View, previous: Int[Array, "A"], at_most: int
) -> Int[Array, "A"]:
    """The best allocation of present agents to active subtasks, by exhaustive search; all `NOBODY` if there are more
    than `at_most`."""
    encoded = networks.encode(params, view, previous)
    agents = previous.shape[-1]
    number = count_allocations(view, agents)
    total = jnp.where(number <= at_most, number, 0).astype(jnp.int32)

    def score(carry: tuple[Int[Array, ""], Float[Array, ""], Int[Array, "A"]]) -> tuple:
        first, best_value, best = carry
        numbers = jnp.minimum(first + jnp.arange(BLOCK), total - 1)
        candidates = allocations_by_number(numbers, view, agents)
        values = networks.values(params, encoded, candidates)
        at = jnp.argmax(values)
        better = values[at] > best_value
        return first + BLOCK, jnp.maximum(values[at], best_value), jnp.where(better, candidates[at], best)

    nobody = jnp.full(agents, NOBODY, jnp.int32)
    return jax.lax.while_loop(lambda carry: carry[0] < total, score, (jnp.int32(0), jnp.float32(-jnp.inf), nobody))[2]


def allocations_by_number(numbers: Int[Array, "P"], view: View, agents: int) -> Int[Array, "P A"]:
    """Allocations by their numbers: each present agent is a digit, whose values are the active subtasks."""
    present = view.present[:agents]
    subtasks = jnp.argsort(~view.active, stable=True)  # the active ones come first
    choices = jnp.maximum(jnp.sum(view.active), 1)
    place = choices ** (jnp.cumsum(present) - present)
    digits = numbers[:, None] // place % choices
    somewhere = present & jnp.any(view.active)
    return jnp.where(somewhere, subtasks[digits], NOBODY).astype(jnp.int32)


def search_nearby(
    networks: AllocatorNetworks,
    params: Params,
    key: PRNGKeyArray,
    view: View,
    previous: Int[Array, "A"],
    proposals: int,
) -> Int[Array, "A"]:
    """Steepest ascent from the best of `proposals`: make the single move that the critic values most, until none is
    better; returns the best allocation found."""
    encoded = networks.encode(params, view, previous)
    agents, subtasks = previous.shape[-1], view.active.shape[-1]
    allowed = allowed_subtasks(view, agents)

    def improve(carry: tuple[Int[Array, ""], Int[Array, "A"], Bool[Array, ""]]) -> tuple:
        count, before, _ = carry
        values = networks.values_of_moves(params, encoded, before, allowed)
        now = networks.values(params, encoded, before[None])[0]
        agent, subtask = jnp.divmod(jnp.argmax(values), subtasks)
        better = jnp.max(values) > now + TOLERANCE * jnp.abs(now)
        return count + 1, before.at[agent].set(jnp.where(better, subtask, before[agent])), better

    def climb(proposal: Int[Array, "A"]) -> Int[Array, "A"]:
        start = jnp.int32(0), proposal, jnp.asarray(True)
        return jax.lax.while_loop(lambda carry: carry[2] & (carry[0] < MOVES * agents), improve, start)[1]

    drawn = networks.proposals(params, key, encoded, proposals)
    _, best = jax.lax.top_k(networks.values(params, encoded, drawn), min(CLIMBS, proposals))
    found = jax.vmap(climb)(drawn[best])
    return found[jnp.argmax(networks.values(params, encoded, found))]
