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
from alma.allocators.exploration import EpsilonGreedy, Explorer
from alma.allocators.networks import AllocatorNetworks, PairNetworks, PointerNetworks
from alma.allocators.noise import NoisyProposals
from alma.allocators.options import AllocatorOptions
from alma.allocators.thompson import ThompsonSampling
from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics, begin_learner, gradient_step
from alma.nn.params import Params
from alma.nn.popart import make_head
from alma.play.situation import Candidates, Situation
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
    def explorer(self) -> Explorer:
        """How it explores in training."""
        options = self.options.exploration
        if options.kind == "noise":
            return NoisyProposals(options.deviation)
        return ThompsonSampling(options.critics) if options.kind == "thompson" else EpsilonGreedy()

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
        explores = self.explorer.init(jax.random.fold_in(key, 1), self.networks, view, allocation)
        return begin_learner({**self.networks.init(key, view, allocation), **explores}, self.options)

    def allocate(
        self,
        params: Params,
        key: PRNGKeyArray,
        situations: Situation,
        due: Bool[Array, "N"],
        exploration: AllocationExploration,
    ) -> Int[Array, "N A"]:
        return self.explorer.allocate(self.networks, params, key, situations, due, self.candidates, exploration)

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
                # A decision's reward is a sum over up to so many steps; values are then on the scale of a step.
                reward_scale=options.reward_scale / options.period,
                candidates=self.candidates,
                entropy_proposals=options.entropy_proposals,
            )
            head = self.networks.head.adapt(learner.params["head"], batch.target, jnp.ones_like(batch.target))
            learner = replace(learner, params={**learner.params, "head": head})

            def loss(params: Params) -> tuple[Float[Array, ""], Metrics]:
                of_networks, metrics = aql_loss(params, self.networks, batch, options.entropy)
                of_explorer, more = self.explorer.loss(self.networks, params, learner.target, batch)
                return of_networks + of_explorer, {**metrics, **more}

            return gradient_step(learner, jax.grad(loss, has_aux=True), options, clock)

        learner, metrics = jax.lax.scan(once, learner, jax.random.split(key, options.updates))
        return learner, jax.tree.map(jnp.mean, metrics)
