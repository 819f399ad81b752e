"""Training: one fused loop of playing, remembering and updating both levels.

Everything a run is, is one pytree (`TrainState`); `Trainer.chunk` takes it a number of steps further, in one
compiled and donated call.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.actors import Actors, Wildness
from alma.actors.networks import Strategy
from alma.allocators.allocator import Exploration, TrainingAllocator
from alma.learning import replay
from alma.learning.learner import Clock, Figures, Level, Params, follow
from alma.nn.trees import select, zeros_like
from alma.play.decisions import decision_due, only_where
from alma.play.environments import Environments, advance, start
from alma.play.situation import Considered, Ratings, Situation
from alma.play.team import Players
from alma.task.task import Task
from alma.task.view import NOBODY, Actions, Allocation, View
from alma.training.methods import make_actors, make_allocator
from alma.training.options import TrainingOptions


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Play:
    """Where the environments are, between two steps. N rows of everything."""

    environments: Environments
    allocation: Int[Array, "N A"]
    strategy: Float[Array, "N A H"] | None
    """What a coach has advised; None where there is no coach."""
    last_action: Int[Array, "N A"]
    wild: Bool[Array, "N A"]
    """Whether that was a random one."""
    since_decision: Int[Array, "N"]
    active: Bool[Array, "N M"]
    """Active subtasks at the last step, to notice that one finished or appeared."""
    decision: replay.Decision
    """The decision that is in force; its reward is still growing."""
    deciding: Bool[Array, "N"]
    """False before an episode's first decision."""


MOST = 128
"""Numbers from 0 that replay can keep: a byte each, with one for nobody."""


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
    average: Params
    """Of both levels, over the last part of the run; None where it is not what plays."""
    env_steps: Int[Array, ""]
    episodes: Int[Array, ""]
    """Finished so far."""
    updates: Int[Array, ""]
    credit: Int[Array, ""]
    """Episodes finished since warm-up that no update has been made for yet."""
    planned: Int[Array, ""]
    """Environment steps the run is meant to have. Data, so that runs of any length share one compiled program."""


@dataclass(frozen=True)
class Trainer:
    """The pure functions of a run, for one task, one method and one set of options."""

    task: Task
    options: TrainingOptions
    method: str = "alma"

    def __post_init__(self) -> None:
        for what, count in (("subtasks", self.task.spec.subtasks), ("actions", len(self.task.spec.actions))):
            if count > MOST:
                raise ValueError(f"replay has room for the numbers of {MOST} {what}, and the task has {count}")

    @cached_property
    def actors(self) -> Actors:
        return make_actors(self.task, self.options, self.method)

    @cached_property
    def allocator(self) -> TrainingAllocator:
        return make_allocator(self.task, self.options, self.method)

    @cached_property
    def views(self) -> Callable[[Any], View]:
        return jax.jit(jax.vmap(self.task.view))  # so that it is traced once, however often it is used

    # ---- beginning

    def init(self, key: PRNGKeyArray) -> TrainState:
        """A run before its first step."""
        return self.plan(self._init(key))

    def plan(self, state: TrainState) -> TrainState:
        """Let a run have as many steps as the options say."""
        return replace(state, planned=jnp.int32(self.options.steps))

    @partial(jax.jit, static_argnums=0)
    def _init(self, key: PRNGKeyArray) -> TrainState:
        play_key, actor_key, allocator_key, key = jax.random.split(key, 4)
        count, collection = self.options.collection.environments, self.options.collection
        play = self._begin_play(play_key, count)
        view = self.views(play.environments.state)
        actors = self.actors.init(actor_key, view, play.allocation)
        advice = jax.eval_shape(self.actors.networks.advise, actors.params, key, view)
        play = replace(play, strategy=zeros_like(advice))
        allocator = self.allocator.init(allocator_key, view, play.allocation)
        return TrainState(
            key=key,
            play=play,
            steps=replay.empty_steps(self._example_step(play), collection.buffer // count),
            decisions=replay.empty_decisions(play.decision, collection.decisions // count),
            actors=actors,
            allocator=allocator,
            average=jax.tree.map(jnp.copy, _live(actors, allocator)) if self.options.play == "average" else None,
            env_steps=jnp.int32(0),
            episodes=jnp.int32(0),
            updates=jnp.int32(0),
            credit=jnp.int32(0),
            planned=jnp.int32(0),
        )

    def _begin_play(self, key: PRNGKeyArray, count: int) -> Play:
        spec = self.task.spec
        environments = start(self.task, key, count)
        nobody = jnp.full((count, spec.agents), NOBODY, jnp.int32)
        return Play(
            environments=environments,
            allocation=nobody,
            strategy=None,
            last_action=nobody,
            wild=jnp.zeros((count, spec.agents), bool),
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
        small, flags = play.allocation.astype(jnp.int8), jnp.zeros_like(play.deciding)
        values = jax.eval_shape(self.actors.scope.active, self.views(play.environments.state))
        return replay.Step(
            state=play.environments.state,
            allocation=small,
            last_action=small,
            action=small,
            rewards=jnp.zeros(values.shape),
            terminated=flags,
            truncated=flags,
            since_decision=flags.astype(jnp.int16),
            end=flags.astype(jnp.int32),
        )

    # ---- playing

    def step(self, state: TrainState) -> tuple[TrainState, Figures]:
        """One step of every environment, remembered."""
        key, allocation_key, coach_key, action_key, step_key = jax.random.split(state.key, 5)
        play, before = state.play, state.play.environments.state
        view = self.views(before)
        due = jax.vmap(partial(decision_due, period=self.options.allocator.period))(
            play.since_decision, active_before=play.active, active=view.active
        )
        explore = self.options.exploration
        situations = Situation(before, view, play.allocation, play.last_action, play.strategy)
        exploration = Exploration(explore.proposal(state.env_steps), explore.subtask(state.env_steps))
        allocation = self.allocator.allocate(state.allocator.params, allocation_key, situations, due, exploration)
        strategy = only_where(due, partial(self._advise_some, state.actors.params, coach_key), view, play.strategy)
        decisions, play = self._decide(state, play, before, allocation, due)
        play = replace(play, strategy=strategy)
        actions, wild = self.actors.act(
            state.actors.params,
            action_key,
            situations._replace(allocation=allocation, strategy=play.strategy),
            play.wild,
            Wildness(explore.action(state.env_steps), explore.persistence),
        )
        environments, reached, outcome = advance(self.task, step_key, play.environments, jnp.maximum(actions, 0))

        small = partial(jnp.asarray, dtype=jnp.int8)
        row = replay.Step(
            state=before,
            allocation=small(allocation),
            last_action=small(play.last_action),
            action=small(jnp.maximum(actions, 0)),
            rewards=self.actors.scope.rewards(outcome),
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            since_decision=play.since_decision.astype(jnp.int16),
            end=jnp.zeros_like(play.since_decision),
        )
        decision = replace(play.decision, reward=play.decision.reward + outcome.reward)
        # A decision that ended the episode has no successor; it points at the next episode's first state, so that
        # proposals are learned for first states too.
        last = replace(decision, next_state=environments.state, terminated=outcome.terminated)
        decisions = replay.add_decisions(decisions, last, outcome.terminated & play.deciding)
        done = outcome.done
        play = replace(
            play, environments=environments, last_action=actions, wild=wild, active=view.active, decision=decision
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
            play=self._forget_where(done, play),
            steps=replay.add_step(state.steps, row, reached),
            decisions=decisions,
            env_steps=state.env_steps + count,
            episodes=state.episodes + jnp.sum(done),
            credit=jnp.where(self._is_warm(state), state.credit + jnp.sum(done), 0),
        ), figures

    def _advise_some(self, params: Params, key: PRNGKeyArray, portion: Int[Array, ""], view: View) -> Strategy:
        return self.actors.networks.advise(params, jax.random.fold_in(key, portion), view)

    def _forget_where(self, done: Bool[Array, "N"], play: Play) -> Play:
        """A step later; where an episode is over, nothing of it is known to the next one."""
        nobody = jnp.full_like(play.allocation, NOBODY)
        return replace(
            play,
            allocation=select(done, nobody, play.allocation),
            last_action=select(done, nobody, play.last_action),
            wild=play.wild & ~done[:, None],
            since_decision=jnp.where(done, self.options.allocator.period, play.since_decision + 1),
            active=play.active & ~done[:, None],
            deciding=play.deciding & ~done,
        )

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

    @partial(jax.jit, static_argnums=0)
    def update(self, state: TrainState) -> tuple[TrainState, Figures]:
        """One update of the actors, and those of the allocator that go with it."""
        key, actor_key, allocator_key = jax.random.split(state.key, 3)
        clock = self.clock(state)
        actors, actor_figures = self.actors.update(state.actors, actor_key, state.steps, self.views, clock)
        allocator, allocator_figures = self.allocator.update(
            state.allocator, allocator_key, state.decisions, self.views, clock
        )
        updates = state.updates + 1
        learned = replace(
            state,
            key=key,
            actors=actors,
            allocator=allocator,
            average=None if state.average is None else follow(state.average, _live(actors, allocator), updates),
            updates=updates,
            credit=state.credit - self.options.collection.episodes_per_update,
        )
        return learned, {**actor_figures, **allocator_figures}

    def clock(self, state: TrainState) -> Clock:
        """How far the run is."""
        return Clock(state.env_steps, state.episodes, jnp.clip(state.env_steps / state.planned, 0, 1))

    def _is_warm(self, state: TrainState) -> Bool[Array, ""]:
        return state.env_steps >= self.options.collection.warmup

    def update_is_due(self, state: TrainState) -> Bool[Array, ""]:
        """Not before there is enough to learn from; and where episodes are counted, not ahead of them."""
        return self._is_warm(state) & (state.credit >= self.options.collection.episodes_per_update)

    def _update_if_due(self, state: TrainState) -> tuple[TrainState, Figures]:
        """Figures are zeros where there was no update."""
        figures = jax.eval_shape(self.update, state)[1]
        nothing = {name: jnp.zeros(figure.shape, figure.dtype) for name, figure in figures.items()}

        def learn(state: TrainState) -> Any:
            after, figures = self.update(state)
            return _changed(after), figures

        def wait(state: TrainState) -> Any:
            return _changed(state), nothing

        # What learning does not change stays outside, or replay would be copied.
        changed, figures = jax.lax.cond(self.update_is_due(state), learn, wait, state)
        return replace(state, **changed), figures

    # ---- both

    @partial(jax.jit, static_argnums=(0, 2), donate_argnums=1)
    def chunk(self, state: TrainState, iterations: int) -> tuple[TrainState, Figures]:
        """Play and learn, over and over. Figures are added up over steps and averaged over updates."""
        collection = self.options.collection
        steps = collection.steps_per_update // collection.environments
        updates_before = state.updates

        def iteration(state: TrainState, _: None) -> tuple[TrainState, Any]:
            state, played = jax.lax.scan(lambda s, _: self.step(s), state, length=steps)
            state, learned = self._update_if_due(state)
            return state, (played, learned)

        state, (played, learned) = jax.lax.scan(iteration, state, length=iterations)
        updates = state.updates - updates_before
        return state, {
            **{name: jnp.sum(value) for name, value in played.items()},
            **{name: jnp.sum(value) / jnp.maximum(updates, 1) for name, value in learned.items()},
            "updates": updates.astype(jnp.float32),
        }

    # ---- using what was learned

    def learned(self, state: TrainState) -> Params:
        """The parameters to play with."""
        if self.options.play == "average":
            return state.average
        if self.options.play == "target":
            return {"actors": state.actors.target, "allocator": state.allocator.target}
        return _live(state.actors, state.allocator)

    def players(self, state: TrainState) -> Players:
        """What has been learned so far, without exploration, ready to be evaluated or watched."""
        return self.players_with(self.learned(state))

    def state_like(self) -> TrainState:
        """Shapes and dtypes of everything a run is."""
        return jax.eval_shape(self.init, jax.random.key(0))

    def params_like(self) -> Params:
        """Shapes and dtypes of the parameters of both levels."""
        return self.learned(self.state_like())

    def players_with(self, params: Params) -> Players:
        """Players with parameters from elsewhere."""
        options = self.options.allocator
        period = options.play_period or options.period
        return Players(self._act, self._allocate, period, params, self._advise, self._rate, self._weigh)

    def _act(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Actions:
        return self.actors.greedy(params["actors"], key, situation)

    def _allocate(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Allocation:
        return self.allocator.greedy(params["allocator"], key, situation)

    def _rate(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Ratings:
        return self.actors.rate(params["actors"], key, situation)

    def _weigh(self, params: Params, key: PRNGKeyArray, situation: Situation, taken: Allocation) -> Considered | None:
        return self.allocator.weigh(params["allocator"], key, situation, taken)

    def _advise(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Strategy:
        return self.actors.networks.advise_best(params["actors"], key, situation.view)


def _live(actors: Level, allocator: Level) -> Params:
    return {"actors": actors.params, "allocator": allocator.params}


def _changed(state: TrainState) -> dict[str, Any]:
    """What an update changes."""
    return {name: getattr(state, name) for name in ("key", "actors", "allocator", "average", "updates", "credit")}


@lru_cache(maxsize=8)
def compile_chunk(trainer: Trainer, iterations: int) -> Callable[[TrainState], tuple[TrainState, Figures]]:
    """`Trainer.chunk` for a number of iterations, compiled before it is called."""
    return trainer.chunk.lower(trainer, trainer.state_like(), iterations).compile()
