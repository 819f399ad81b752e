"""The learned allocator as a whole: its networks, how it allocates, and how it learns from replay."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.allocators.allocator import AllocationExploration
from alma.allocators.aql import CandidateCounts, allocator_batch, aql_loss, choose, draw_candidates
from alma.allocators.networks import AllocatorNetworks, PairNetworks, PointerNetworks
from alma.allocators.options import AllocatorOptions
from alma.allocators.proposal import allowed_subtasks
from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics, begin_learner, gradient_step
from alma.nn.params import Params
from alma.nn.popart import make_head
from alma.play.decisions import apply_where
from alma.play.situation import Candidates, Situation
from alma.task.choice import choose_uniformly
from alma.task.spec import TaskSpec
from alma.task.view import Allocation, View


@dataclass(frozen=True)
class LearnedAllocator:
    """An allocator that learns by amortised Q-learning: it takes the candidate of highest value."""

    spec: TaskSpec
    options: AllocatorOptions

    allocates: ClassVar[bool] = True
    needs_state: ClassVar[bool] = False
    has_critic: ClassVar[bool] = True
    learns: ClassVar[bool] = True

    @cached_property
    def networks(self) -> AllocatorNetworks:
        """Proposal network, critic and head, as functions of parameters."""
        options = self.options.networks
        head = make_head(self.options.popart)
        features = self.spec.features_seen(options.places)
        if options.kind == "pointer":
            return PointerNetworks(head, options.width, options.heads, features, options.relations)
        spec = self.spec
        return PairNetworks(
            head, options.width, options.choice_width, spec.things_per_subtask, features, spec.agents, spec.subtasks
        )

    @property
    def candidates(self) -> CandidateCounts:
        """Numbers of candidates in training."""
        return CandidateCounts(self.options.proposals, self.options.variations)

    @property
    def played_candidates(self) -> CandidateCounts:
        """Numbers of candidates in play, where there may be more than in training."""
        times = self.options.play_candidates
        return CandidateCounts(times * self.options.proposals, times * self.options.variations)

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> LearnerState:
        return begin_learner(self.networks.init(key, view, allocation), self.options)

    def allocate(
        self,
        params: Params,
        key: PRNGKeyArray,
        situations: Situation,
        due: Bool[Array, "N"],
        exploration: AllocationExploration,
    ) -> Int[Array, "N A"]:
        choose_key, proposal_key, subtask_key = jax.random.split(key, 3)
        view, previous = situations.view, jnp.asarray(situations.allocation)

        def fresh(portion: Int[Array, ""], inputs: tuple[View, Int[Array, "n A"]]) -> Any:
            encoded = self.networks.encode(params, *inputs)
            best, candidates = choose(
                self.networks, params, jax.random.fold_in(choose_key, portion), encoded, inputs[0], self.candidates
            )
            return best, candidates[:, 0]

        best, first = apply_where(due, fresh, (view, previous), (previous, previous))
        takes_first = jax.random.uniform(proposal_key, due.shape) < exploration.proposal
        chosen = jnp.where(takes_first[:, None], first, best)
        chosen = explore_subtasks(subtask_key, chosen, view, exploration.subtask)
        return jnp.where(due[:, None], chosen, previous)

    def greedy(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Allocation:
        encoded = self.networks.encode(params, situation.view, jnp.asarray(situation.allocation))
        return choose(self.networks, params, key, encoded, situation.view, self.played_candidates)[0]

    def explain_allocation(
        self, params: Params, key: PRNGKeyArray, situation: Situation, taken: Allocation
    ) -> Candidates:
        """The allocation taken and all candidates in this situation, with the critic's values."""
        encoded = self.networks.encode(params, situation.view, jnp.asarray(situation.allocation))
        candidates = draw_candidates(self.networks, params, key, encoded, situation.view, self.played_candidates)
        allocations = jnp.concatenate([jnp.asarray(taken)[None], candidates])
        return Candidates(allocations, self.networks.values(params, encoded, allocations))

    def values(self, params: Params, situation: Situation, allocations: Int[Array, "P A"]) -> Float[Array, "P"]:
        """The critic's value of each allocation."""
        encoded = self.networks.encode(params, situation.view, jnp.asarray(situation.allocation))
        return self.networks.values(params, encoded, allocations)

    def update(
        self,
        learner: LearnerState,
        key: PRNGKeyArray,
        decisions: replay.Decisions | None,
        view_of: Callable[[Any], View],
        clock: Clock,
    ) -> tuple[LearnerState, Metrics]:
        assert decisions is not None, "replay keeps decisions for allocators that learn"
        options = self.options

        def once(learner: LearnerState, key: PRNGKeyArray) -> tuple[LearnerState, Metrics]:
            sample_key, proposal_key = jax.random.split(key)
            sampled = replay.sample_decisions(
                sample_key, decisions, options.batch, clock.env_steps, options.max_age, options.n_step
            )
            batch = allocator_batch(
                learner.params,
                learner.target,
                self.networks,
                view_of,
                proposal_key,
                sampled,
                gamma=options.gamma,
                reward_scale=options.reward_scale / options.period,
                candidates=self.candidates,
                entropy_proposals=options.entropy_proposals,
            )
            head = self.networks.head.adapt(learner.params["head"], batch.target, jnp.ones_like(batch.target))
            learner = replace(learner, params={**learner.params, "head": head})
            gradients_of = jax.grad(aql_loss, has_aux=True)
            return gradient_step(
                learner, lambda params: gradients_of(params, self.networks, batch, options.entropy), options, clock
            )

        learner, metrics = jax.lax.scan(once, learner, jax.random.split(key, options.updates))
        return learner, jax.tree.map(jnp.mean, metrics)


def explore_subtasks(
    key: PRNGKeyArray, chosen: Int[Array, "N A"], view: View, chance: Float[Array, ""]
) -> Int[Array, "N A"]:
    """Give each agent a random active subtask with probability `chance`."""
    explore_key, subtask_key = jax.random.split(key)
    explores = jax.random.uniform(explore_key, chosen.shape) < chance
    return jnp.where(explores, choose_uniformly(subtask_key, allowed_subtasks(view, chosen.shape[-1])), chosen)
