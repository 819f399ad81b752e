"""Training: one fused loop of playing, remembering and updating both levels.

Everything a run is, is one pytree (`TrainState`); `Trainer.chunk` takes it a number of steps further, in one
compiled and donated call.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma import replay
from alma.choice import choose_uniformly
from alma.evaluation import Players
from alma.learning.aql import AllocatorNetworks, aql_loss, choose
from alma.learning.qmix import ActorNetworks, greedy, qmix_loss
from alma.networks.attention import Attention, Pooling
from alma.networks.mixer import Qmix, Sum
from alma.networks.pairs import PairCritic, PairProposal
from alma.networks.utility import Utility
from alma.presets import NetworkOptions, TrainingOptions
from alma.rollout import Environments, Situation, advance, decision_due, select, start
from alma.task import NOBODY, Actions, Allocation, Task, TaskSpec, View

Params = Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Level:
    """What one level learns with."""

    params: Params
    target: Params
    optimiser: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Play:
    """Where the environments are, between two steps. N rows of everything."""

    environments: Environments
    allocation: Int[Array, "N A"]
    last_action: Int[Array, "N A"]
    since_decision: Int[Array, "N"]
    active: Bool[Array, "N M"]
    """Active subtasks at the last step, to notice that one finished or appeared."""
    decision: replay.Decision
    """The decision that is in force; its reward is still growing."""
    deciding: Bool[Array, "N"]
    """False before an episode's first decision."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """Everything a run is."""

    key: PRNGKeyArray
    play: Play
    steps: replay.Steps
    decisions: replay.Decisions
    actors: Level
    allocator: Level
    env_steps: Int[Array, ""]


def make_actor_networks(options: NetworkOptions, spec: TaskSpec) -> ActorNetworks:
    """The networks of the low level for a task."""
    trunks: dict[str, Attention | Pooling] = {
        "pooling": Pooling(options.width),
        "attention": Attention(options.width, options.heads),
    }
    mixers = {"sum": Sum(), "qmix": Qmix(options.mixer_width, options.width, options.heads)}
    utility = Utility(trunks[options.trunk], options.hidden, len(spec.actions))
    return ActorNetworks(utility, mixers[options.mixer], spec.mask_subtask_actions)


def make_allocator_networks(options: NetworkOptions) -> AllocatorNetworks:
    """The networks of the high level."""
    return AllocatorNetworks(
        PairProposal(options.allocator_width, options.choice_width), PairCritic(options.allocator_width)
    )


@dataclass(frozen=True)
class Trainer:
    """The pure functions of a run, for one task and one set of options."""

    task: Task
    options: TrainingOptions

    @cached_property
    def actor_networks(self) -> ActorNetworks:
        return make_actor_networks(self.options.networks, self.task.spec)

    @cached_property
    def allocator_networks(self) -> AllocatorNetworks:
        return make_allocator_networks(self.options.networks)

    @cached_property
    def actor_optimiser(self) -> optax.GradientTransformation:
        return _optimiser(self.options.actors.learning_rate, self.options.actors.clip)

    @cached_property
    def allocator_optimiser(self) -> optax.GradientTransformation:
        return _optimiser(self.options.allocator.learning_rate, self.options.allocator.clip)

    @cached_property
    def views(self) -> Callable[[Any], View]:
        return jax.vmap(self.task.view)

    # ---- beginning

    def init(self, key: PRNGKeyArray) -> TrainState:
        """A run before its first step."""
        play_key, actor_key, allocator_key, key = jax.random.split(key, 4)
        count, collection = self.options.collection.environments, self.options.collection
        play = self._begin_play(play_key, count)
        view = self.views(play.environments.state)
        actors = self.actor_networks.init(actor_key, view, play.allocation, self.task.spec.subtasks)
        allocator = self.allocator_networks.init(allocator_key, view, play.allocation)
        return TrainState(
            key=key,
            play=play,
            steps=replay.empty_steps(self._example_step(play), collection.buffer // count),
            decisions=replay.empty_decisions(play.decision, collection.decisions // count),
            actors=Level(actors, jax.tree.map(jnp.copy, actors), self.actor_optimiser.init(actors)),
            allocator=Level(allocator, jax.tree.map(jnp.copy, allocator), self.allocator_optimiser.init(allocator)),
            env_steps=jnp.int32(0),
        )

    def _begin_play(self, key: PRNGKeyArray, count: int) -> Play:
        spec = self.task.spec
        environments = start(self.task, key, count)
        nobody = jnp.full((count, spec.agents), NOBODY, jnp.int32)
        return Play(
            environments=environments,
            allocation=nobody,
            last_action=nobody,
            since_decision=jnp.full(count, self.options.allocator.period),
            active=jnp.zeros((count, spec.subtasks), bool),
            decision=replay.Decision(
                state=jax.tree.map(jnp.copy, environments.state),
                previous=nobody.astype(jnp.int8),
                allocation=nobody.astype(jnp.int8),
                reward=jnp.zeros(count),
                next_state=jax.tree.map(jnp.copy, environments.state),
                terminated=jnp.zeros(count, bool),
                born=jnp.zeros(count, jnp.int32),
            ),
            deciding=jnp.zeros(count, bool),
        )

    def _example_step(self, play: Play) -> replay.Step:
        count, subtasks = play.active.shape
        small = play.allocation.astype(jnp.int8)
        flags = jnp.zeros(count, bool)
        return replay.Step(play.environments.state, small, small, small, jnp.zeros((count, subtasks)), flags, flags)

    # ---- playing

    def allocate(
        self, state: TrainState, key: PRNGKeyArray, view: View, previous: Int[Array, "N A"], due: Bool[Array, "N"]
    ) -> Int[Array, "N A"]:
        """New allocations where they are due, with exploration."""
        explore = self.options.exploration
        choose_key, proposal_key, random_key, subtask_key = jax.random.split(key, 4)
        fresh = partial(self._best_and_first, state.allocator.params, choose_key)
        best, first = _only_where(due, fresh, (view, previous), (previous, previous))
        takes_first = jax.random.uniform(proposal_key, due.shape) < explore.proposal(state.env_steps)
        chosen = jnp.where(takes_first[:, None], first, best)
        agents = previous.shape[-1]
        allowed = view.present[:, :agents, None] & view.active[:, None, :]
        wanders = jax.random.uniform(random_key, chosen.shape) < explore.subtask(state.env_steps)
        chosen = jnp.where(wanders, choose_uniformly(subtask_key, allowed), chosen)
        return jnp.where(due[:, None], chosen, previous)

    def _best_and_first(
        self, params: Params, key: PRNGKeyArray, inputs: tuple[View, Int[Array, "*n A"]]
    ) -> tuple[Int[Array, "*n A"], Int[Array, "*n A"]]:
        view, previous = inputs
        return choose(self.allocator_networks, params, key, view, previous, self.options.allocator.proposals)

    def act(self, state: TrainState, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> Int[Array, "N A"]:
        """Actions with exploration."""
        random_key, explore_key = jax.random.split(key)
        available = self.actor_networks.available(view, allocation)
        values = self.actor_networks.utilities(state.actors.params, view, allocation, state.play.last_action)
        wild = jax.random.uniform(explore_key, allocation.shape) < self.options.exploration.action(state.env_steps)
        return jnp.where(wild, choose_uniformly(random_key, available), greedy(values, available))

    def step(self, state: TrainState) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        """One step of every environment, remembered."""
        key, allocation_key, action_key, step_key = jax.random.split(state.key, 4)
        play, before = state.play, state.play.environments.state
        view = self.views(before)
        due = jax.vmap(partial(decision_due, period=self.options.allocator.period))(
            play.since_decision, active_before=play.active, active=view.active
        )
        allocation = self.allocate(state, allocation_key, view, play.allocation, due)
        decisions, play = self._decide(state, play, before, allocation, due)
        actions = self.act(replace(state, play=play), action_key, view, allocation)
        environments, _, outcome = advance(self.task, step_key, play.environments, jnp.maximum(actions, 0))

        small = partial(jnp.asarray, dtype=jnp.int8)
        row = replay.Step(
            before,
            small(allocation),
            small(play.last_action),
            small(jnp.maximum(actions, 0)),
            outcome.subtask_rewards,
            outcome.terminated,
            outcome.truncated,
        )
        decision = replace(play.decision, reward=play.decision.reward + outcome.reward)
        decisions = replay.add_decisions(
            decisions, replace(decision, terminated=outcome.terminated), outcome.terminated & play.deciding
        )
        done = outcome.done
        nobody = jnp.full_like(allocation, NOBODY)
        play = replace(
            play,
            environments=environments,
            allocation=select(done, nobody, allocation),
            last_action=select(done, nobody, actions),
            since_decision=jnp.where(done, self.options.allocator.period, play.since_decision + 1),
            active=view.active & ~done[:, None],
            decision=decision,
            deciding=play.deciding & ~done,
        )
        figures = {
            "episodes": jnp.sum(done, dtype=jnp.float32),
            "solved": jnp.sum(outcome.success, dtype=jnp.float32),
            "reward": jnp.sum(outcome.reward),
        }
        count = self.options.collection.environments
        return replace(
            state,
            key=key,
            play=play,
            steps=replay.add_step(state.steps, row),
            decisions=decisions,
            env_steps=state.env_steps + count,
        ), figures

    def _decide(
        self, state: TrainState, play: Play, now: Any, allocation: Int[Array, "N A"], due: Bool[Array, "N"]
    ) -> tuple[replay.Decisions, Play]:
        """Where a decision is due, the one in force is over and the new one takes its place."""
        over = replace(play.decision, next_state=now, terminated=jnp.zeros_like(due))
        decisions = replay.add_decisions(state.decisions, over, due & play.deciding)
        fresh = replay.Decision(
            state=now,
            previous=play.allocation.astype(jnp.int8),
            allocation=allocation.astype(jnp.int8),
            reward=jnp.zeros_like(play.decision.reward),
            next_state=now,
            terminated=jnp.zeros_like(due),
            born=jnp.broadcast_to(state.env_steps, due.shape),
        )
        return decisions, replace(
            play,
            allocation=allocation,
            decision=select(due, fresh, play.decision),
            deciding=play.deciding | due,
            since_decision=jnp.where(due, 0, play.since_decision),
        )

    # ---- learning

    def update(self, state: TrainState) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        """One update of each level."""
        key, actor_key, allocator_key = jax.random.split(state.key, 3)
        actors, actor_figures = self.update_actors(state, actor_key)
        allocator, allocator_figures = self.update_allocator(state, allocator_key)
        return replace(state, key=key, actors=actors, allocator=allocator), {**actor_figures, **allocator_figures}

    def update_actors(self, state: TrainState, key: PRNGKeyArray) -> tuple[Level, dict[str, Float[Array, ""]]]:
        options = self.options.actors
        window = replay.sample_windows(key, state.steps, options.batch, options.n_step + 1)
        loss = partial(
            qmix_loss,
            networks=self.actor_networks,
            view_of=self.views,
            window=window,
            gamma=options.gamma,
            reward_scale=options.reward_scale,
        )
        return _learn(state.actors, loss, self.actor_optimiser, options.target_rate)

    def update_allocator(self, state: TrainState, key: PRNGKeyArray) -> tuple[Level, dict[str, Float[Array, ""]]]:
        options = self.options.allocator
        sample_key, proposal_key = jax.random.split(key)
        batch, weight = replay.sample_decisions(
            sample_key, state.decisions, options.batch, state.env_steps, options.max_age
        )
        loss = partial(
            aql_loss,
            networks=self.allocator_networks,
            view_of=self.views,
            key=proposal_key,
            batch=batch,
            weight=weight,
            gamma=options.gamma,
            reward_scale=options.reward_scale / options.period,
            proposals=options.proposals,
            entropy=options.entropy,
        )
        return _learn(state.allocator, loss, self.allocator_optimiser, options.target_rate)

    # ---- both

    @partial(jax.jit, static_argnums=(0, 2, 3), donate_argnums=1)
    def chunk(self, state: TrainState, iterations: int, learn: bool) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        """Play and learn, over and over. Figures are added up over steps and averaged over updates."""
        collection = self.options.collection
        steps = collection.steps_per_update // collection.environments

        def iteration(state: TrainState, _: None) -> tuple[TrainState, Any]:
            state, played = jax.lax.scan(lambda s, _: self.step(s), state, length=steps)
            state, learned = self.update(state) if learn else (state, {})
            return state, (played, learned)

        state, (played, learned) = jax.lax.scan(iteration, state, length=iterations)
        return state, {
            **{name: jnp.sum(value) for name, value in played.items()},
            **{name: jnp.mean(value) for name, value in learned.items()},
        }

    # ---- using what was learned

    def players(self, state: TrainState) -> Players:
        """What has been learned so far, without exploration, ready to be evaluated or watched."""
        params = {"actors": state.actors.params, "allocator": state.allocator.params}
        return Players(self.greedy_policy, self.greedy_allocator, self.options.allocator.period, params)

    def greedy_policy(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Actions:
        """Everybody's best available action."""
        view, allocation = situation.view, jnp.asarray(situation.allocation)
        values = self.actor_networks.utilities(params["actors"], view, allocation, situation.last_action)
        return greedy(values, self.actor_networks.available(view, allocation))

    def greedy_allocator(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Allocation:
        """The best of the proposals."""
        inputs = situation.view, jnp.asarray(situation.allocation)
        return self._best_and_first(params["allocator"], key, inputs)[0]


def _optimiser(learning_rate: float, clip: float) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(learning_rate))


def _learn(
    level: Level,
    loss: Callable[..., tuple[Float[Array, ""], dict[str, Float[Array, ""]]]],
    optimiser: optax.GradientTransformation,
    target_rate: float,
) -> tuple[Level, dict[str, Float[Array, ""]]]:
    """One gradient step; the target network follows a little."""
    gradients, figures = jax.grad(loss, has_aux=True)(level.params, level.target)
    updates, optimiser_state = optimiser.update(gradients, level.optimiser, level.params)
    params = optax.apply_updates(level.params, updates)
    target = optax.incremental_update(params, level.target, target_rate)
    return Level(params, target, optimiser_state), figures


def _only_where(due: Bool[Array, "N"], function: Callable[[Any], Any], inputs: Any, otherwise: Any) -> Any:
    """Apply a function of rows where it is due, and give other rows `otherwise`.

    Decisions are due in about a quarter of all environments: computing only those saves most of the cost of
    allocation. When more are due than fit, all are computed.
    """
    count = due.shape[0]
    room = -(-count * 3 // 8)

    def some() -> Any:
        rows = jnp.nonzero(due, size=room, fill_value=count)[0]
        results = function(jax.tree.map(lambda leaf: leaf[jnp.minimum(rows, count - 1)], inputs))
        return jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), otherwise, results)

    return jax.lax.cond(jnp.sum(due) <= room, some, lambda: select(due, function(inputs), otherwise))
