"""Exploration of allocations by Thompson sampling: critics that disagree about an allocation make it worth a try.

Several critics learn besides the allocator's own, as in bootstrapped DQN (Osband et al., 2016). They start from
different parameters, learn from different halves of the decisions, and bootstrap from their own target networks. Every
environment follows one of them: its allocations are the candidates that this critic values most. Where little is known
the critics differ, and so do the allocations that are tried; where they have come to agree, nothing is left to explore.

The critics share the allocator's encoder without training it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.allocator import AllocationExploration
from alma.allocators.aql import AllocatorBatch, CandidateCounts, best_of, draw_candidates
from alma.allocators.networks import AllocatorNetworks
from alma.learning.learner import Metrics
from alma.nn.params import Params
from alma.play.decisions import apply_where
from alma.play.situation import Situation
from alma.task.view import View

CRITICS = "critics"
"""The name of the critics' parameters among those of the allocator."""

SHARE = 0.5
"""The fraction of decisions that each critic learns from."""


@dataclass(frozen=True)
class ThompsonSampling:
    """Every environment follows the critic of an ensemble. It follows no schedule: `exploration` is ignored."""

    critics: int
    """Number of critics."""

    def init(
        self, key: PRNGKeyArray, networks: AllocatorNetworks, view: View, previous: Int[Array, "N A"]
    ) -> dict[str, Params]:
        keys = jax.random.split(key, self.critics)
        return {CRITICS: jax.vmap(lambda key: networks.init(key, view, previous)["critic"])(keys)}

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
        previous = jnp.asarray(situations.allocation)
        followed = jnp.arange(len(due)) % self.critics

        def fresh(portion: Int[Array, ""], inputs: tuple[View, Int[Array, "n A"], Int[Array, "n"]]) -> Any:
            view, before, critic = inputs
            encoded = networks.encode(params, view, before)
            drawn = draw_candidates(networks, params, jax.random.fold_in(key, portion), encoded, view, candidates)
            values = values_by_critics(networks, params, encoded, drawn)
            return best_of(drawn, values[critic, jnp.arange(len(critic))])

        return apply_where(due, fresh, (situations.view, previous, followed), previous)

    def loss(
        self, networks: AllocatorNetworks, params: Params, target: Params, batch: AllocatorBatch
    ) -> tuple[Float[Array, ""], Metrics]:
        encoded = jax.lax.stop_gradient(networks.encode(params, batch.view, batch.previous))
        later = values_by_critics(networks, target, batch.later_by_target, batch.best[:, None])[..., 0]
        targets = jax.lax.stop_gradient(batch.reward + batch.discount * later)
        raw = raw_values_by_critics(networks, params, encoded, batch.allocation[:, None])[..., 0]
        head = jax.lax.stop_gradient(params["head"])
        learns = learned_from(batch.made_at, self.critics)
        errors = jnp.where(learns, networks.head.error(head, raw, targets), 0)
        # A sum over critics: each learns as fast as if it were alone.
        loss = jnp.sum(errors**2) / (SHARE * batch.made_at.size)
        spread = jnp.std(networks.head.value(head, raw), axis=0)
        return loss, {"critics_loss": loss / self.critics, "critics_spread": jnp.mean(spread)}


def raw_values_by_critics(
    networks: AllocatorNetworks, params: Params, encoded: Any, allocations: Int[Array, "n P A"]
) -> Float[Array, "K n P"]:
    """The raw outputs of all critics."""
    return jax.vmap(lambda critic: networks.raw_values({**params, "critic": critic}, encoded, allocations))(
        params[CRITICS]
    )


def values_by_critics(
    networks: AllocatorNetworks, params: Params, encoded: Any, allocations: Int[Array, "n P A"]
) -> Float[Array, "K n P"]:
    """The values of allocations under all critics."""
    return networks.head.value(params["head"], raw_values_by_critics(networks, params, encoded, allocations))


def learned_from(made_at: Int[Array, "B"], critics: int) -> Bool[Array, "K B"]:
    """Which critics learn from decisions: always the same ones from the same decision, since they depend on the step at
    which it was made."""
    keys = jax.vmap(lambda step: jax.random.fold_in(jax.random.key(0), step))(made_at)
    return jax.vmap(lambda key: jax.random.bernoulli(key, SHARE, (critics,)), out_axes=1)(keys)
