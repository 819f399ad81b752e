"""Training: one fused loop of acting, storing in replay, and updating both levels.

The whole state of a run is one pytree (`TrainState`); `Trainer.chunk` advances it by a number of steps in one compiled
call, which donates its buffers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from alma.actors.actors import ActionExploration, Actors
from alma.allocators.allocator import AllocationExploration, TrainingAllocator
from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics, update_average
from alma.nn.devices import device_count, mean_over_devices, own_key, sum_over_devices
from alma.play.cond import cond
from alma.play.decisions import InForce, decisions_due, nothing_in_force, record_actions, renew, reset_where_done
from alma.play.environments import Environments, advance, start
from alma.play.situation import situations_of
from alma.play.team import TeamParams
from alma.play.trees import select, zeros_like
from alma.task.outcome import Outcome
from alma.task.task import Task
from alma.task.view import NOBODY, View
from alma.training.methods import LearningTeam, make_team
from alma.training.options import TrainingOptions


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rollout:
    """The state of N environments between two steps."""

    environments: Environments
    in_force: InForce
    explored: Bool[Array, "N A"]
    """Mask of the last actions that were random."""
    decision: replay.Decision | None
    """The unfinished transition of the decision in force, whose reward is still being summed; None if the allocator
    does not learn."""
    deciding: Bool[Array, "N"]
    """Whether a decision is in force, so that `decision` is valid; False before the first one of an episode."""


MAX_INDICES = 128
"""The most subtasks or actions whose indices fit into replay, which stores them as int8 (-1 stands for none)."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """The whole state of a run.

    A new field also belongs into `SHARED` (`alma/training/sharding.py`) if its arrays have rows for environments, and
    into `_changed_by_update` if updates change it.
    """

    key: PRNGKeyArray
    rollout: Rollout
    steps: replay.Steps
    decisions: replay.Decisions | None
    """None if the allocator does not learn."""
    actors: LearnerState
    allocator: LearnerState
    average: TeamParams | None
    """Running average of the live parameters; None unless `TrainingOptions.play` is `average`."""
    env_steps: Int[Array, ""]
    """Environment steps so far, over all environments."""
    episodes: Int[Array, ""]
    """Finished episodes."""
    updates: Int[Array, ""]
    credit: Int[Array, ""]
    """Episodes finished since warm-up that no update has been made for yet (see `episodes_per_update`)."""
    planned: Int[Array, ""]
    """Environment steps to train for. An array, so that runs of any length share one compiled program."""


@dataclass(frozen=True)
class Trainer:
    """The pure functions of a training run, for one task, method and set of options."""

    task: Task
    options: TrainingOptions
    method: str = "alma"

    def __post_init__(self) -> None:
        for what, count in (("subtasks", self.task.spec.subtasks), ("actions", len(self.task.spec.actions))):
            if count > MAX_INDICES:
                raise ValueError(f"replay has room for the numbers of {MAX_INDICES} {what}, and the task has {count}")
        environments, most = self.options.collection.environments, self.task.parallel
        if most is not None and environments > most:
            raise ValueError(f"collection.environments must be at most {most}, the most copies of the simulator")

    @cached_property
    def team(self) -> LearningTeam:
        """The actors and the allocator that are trained."""
        return make_team(self.task, self.options, self.method)

    @property
    def actors(self) -> Actors:
        return self.team.actors

    @property
    def allocator(self) -> TrainingAllocator:
        return self.team.allocator

    @property
    def training_period(self) -> int:
        """N_t in training: maximum number of steps between two allocations."""
        return self.options.allocator.period

    @cached_property
    def views(self) -> Callable[[Any], View]:
        """`Task.view` for a batch of states."""
        return jax.jit(jax.vmap(self.task.view))  # jitted, so that it is traced once, however often it is used

    # ---- initial state

    def init(self, key: PRNGKeyArray) -> TrainState:
        """The state of a run before its first step."""
        return self.plan(self._init(key))

    def plan(self, state: TrainState) -> TrainState:
        """The state with the planned number of steps set to that of the options."""
        return replace(state, planned=jnp.int32(self.options.steps))

    @partial(jax.jit, static_argnums=0)
    def _init(self, key: PRNGKeyArray) -> TrainState:
        play_key, actor_key, allocator_key, key = jax.random.split(key, 4)
        count, collection = self.options.collection.environments, self.options.collection
        environments = start(self.task, own_key(play_key), count)
        view, spec = self.views(environments.state), self.task.spec
        nobody = jnp.full((count, spec.agents), NOBODY, jnp.int32)
        actors = self.actors.init(actor_key, view, nobody)
        allocator = self.allocator.init(allocator_key, view, nobody)
        strategy = zeros_like(jax.eval_shape(self.actors.networks.advise, actors.params, key, view))
        decision = self._no_decision(environments) if self.allocator.learns else None
        return TrainState(
            key=key,
            rollout=Rollout(
                environments=environments,
                in_force=nothing_in_force(count, spec.agents, spec.subtasks, self.training_period, strategy),
                explored=jnp.zeros((count, spec.agents), bool),
                decision=decision,
                deciding=jnp.zeros(count, bool),
            ),
            steps=replay.empty_steps(self._example_step(environments), collection.buffer // count),
            decisions=None if decision is None else replay.empty_decisions(decision, collection.decisions // count),
            actors=actors,
            allocator=allocator,
            average=jax.tree.map(jnp.copy, live_params(actors, allocator)) if self.options.play == "average" else None,
            env_steps=jnp.int32(0),
            episodes=jnp.int32(0),
            updates=jnp.int32(0),
            credit=jnp.int32(0),
            planned=jnp.int32(0),
        )

    def _no_decision(self, environments: Environments) -> replay.Decision:
        """A placeholder for the decision in force before the first one is made."""
        count = self.options.collection.environments
        nobody = jnp.full((count, self.task.spec.agents), NOBODY, jnp.int8)
        return replay.Decision(
            state=jax.tree.map(jnp.copy, environments.state),
            previous=nobody,
            allocation=nobody,
            reward=jnp.zeros(count),
            next_state=jax.tree.map(jnp.copy, environments.state),
            terminated=jnp.zeros(count, bool),
            made_at=jnp.zeros(count, jnp.int32),
        )

    def _example_step(self, environments: Environments) -> replay.Step:
        """A step with the shapes and dtypes of all that are stored."""
        count = self.options.collection.environments
        small, flags = jnp.zeros((count, self.task.spec.agents), jnp.int8), jnp.zeros(count, bool)
        values = jax.eval_shape(self.actors.scope.active, self.views(environments.state))
        return replay.Step(
            state=environments.state,
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

    def step(self, state: TrainState) -> tuple[TrainState, Metrics]:
        """Step every environment once, with exploration, and store the step in replay."""
        key, *keys = jax.random.split(state.key, 5)
        allocation_key, coach_key, action_key, step_key = map(own_key, keys)
        before = state.rollout
        view = self.views(before.environments.state)
        due = decisions_due(before.in_force, view, self.training_period)
        in_force = self._decide(state, view, due, allocation_key, coach_key)
        actions, explored = self._act(state, view, in_force, action_key)
        taken = jnp.maximum(actions, 0)  # absent agents have no action
        environments, reached, outcome = advance(self.task, step_key, before.environments, taken)
        decisions, decision = self._store_decisions(state, in_force, due, environments, outcome)
        row = self._replay_row(before.environments.state, in_force, taken, outcome)
        done = outcome.done
        rollout = Rollout(
            environments=environments,
            in_force=reset_where_done(record_actions(in_force, actions), done, self.training_period),
            explored=explored & ~done[:, None],
            decision=decision,
            deciding=(before.deciding | due) & ~done,
        )
        return replace(
            state,
            key=key,
            rollout=rollout,
            steps=replay.add_step(state.steps, row, reached),
            decisions=decisions,
            env_steps=state.env_steps + self.options.collection.environments * device_count(),
            episodes=state.episodes + jnp.sum(done),
            credit=jnp.where(self._is_warm(state), state.credit + jnp.sum(done), 0),
        ), _step_metrics(outcome)

    def _decide(
        self,
        state: TrainState,
        view: View,
        due: Bool[Array, "N"],
        allocation_key: PRNGKeyArray,
        coach_key: PRNGKeyArray,
    ) -> InForce:
        """Make decisions, of the allocator and the coach, where they are due."""
        before, schedules = state.rollout.in_force, self.options.exploration
        situations = situations_of(state.rollout.environments.state, view, before)
        exploration = AllocationExploration(schedules.proposal(state.env_steps), schedules.subtask(state.env_steps))
        allocation = self.allocator.allocate(state.allocator.params, allocation_key, situations, due, exploration)
        strategy = self.actors.advise(state.actors.params, coach_key, situations, due)
        return renew(before, view, due, allocation, strategy)

    def _act(
        self, state: TrainState, view: View, in_force: InForce, key: PRNGKeyArray
    ) -> tuple[Int[Array, "N A"], Bool[Array, "N A"]]:
        """The actions of all agents, and the mask of the random ones."""
        schedules = self.options.exploration
        exploration = ActionExploration(schedules.action(state.env_steps), schedules.persistence)
        situations = situations_of(state.rollout.environments.state, view, in_force)
        return self.actors.act(state.actors.params, key, situations, state.rollout.explored, exploration)

    def _store_decisions(
        self,
        state: TrainState,
        in_force: InForce,
        due: Bool[Array, "N"],
        environments: Environments,
        outcome: Outcome,
    ) -> tuple[replay.Decisions | None, replay.Decision | None]:
        """Store decisions in replay where the next one replaces them or the episode has terminated.

        Returns the replay buffer, and the unfinished transitions of the decisions in force, with the reward of this
        step.
        """
        rollout, now = state.rollout, state.rollout.environments.state
        if state.decisions is None or rollout.decision is None:
            return None, None
        replaced = replace(rollout.decision, next_state=now, terminated=jnp.zeros_like(due))
        decisions = replay.add_decisions(state.decisions, replaced, due & rollout.deciding)
        decision = select(due, self._new_decision(state, in_force, now), rollout.decision)
        decision = replace(decision, reward=decision.reward + outcome.reward)
        # The value of the next state of a terminal transition is not used. It is set to the first state of the next
        # episode, so that the proposal network is trained in first states too.
        last = replace(decision, next_state=environments.state, terminated=outcome.terminated)
        return replay.add_decisions(decisions, last, outcome.terminated & (rollout.deciding | due)), decision

    def _new_decision(self, state: TrainState, in_force: InForce, now: Any) -> replay.Decision:
        """The unfinished transitions of decisions made in this step; their next states are not known yet."""
        done = jnp.zeros_like(state.rollout.deciding)
        return replay.Decision(
            state=now,
            previous=_small(state.rollout.in_force.allocation),
            allocation=_small(in_force.allocation),
            reward=jnp.zeros(done.shape),
            next_state=now,
            terminated=done,
            made_at=jnp.broadcast_to(state.env_steps, done.shape),
        )

    def _replay_row(self, before: Any, in_force: InForce, actions: Int[Array, "N A"], outcome: Outcome) -> replay.Step:
        """The step as the actors' replay buffer stores it; `before` are the states before the step."""
        return replay.Step(
            state=before,
            allocation=_small(in_force.allocation),
            last_action=_small(in_force.last_action),
            action=_small(actions),
            rewards=self.actors.scope.rewards(outcome),
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            since_decision=in_force.since_decision.astype(jnp.int16),
            end=jnp.zeros_like(in_force.since_decision),
        )

    # ---- learning

    @partial(jax.jit, static_argnums=0)
    def update(self, state: TrainState) -> tuple[TrainState, Metrics]:
        """One gradient step of the actors, and `AllocatorOptions.updates` of the allocator."""
        key, *keys = jax.random.split(state.key, 3)
        actor_key, allocator_key = map(own_key, keys)
        clock = self.clock(state)
        actors, actor_metrics = self.actors.update(state.actors, actor_key, state.steps, self.views, clock)
        allocator, allocator_metrics = self.allocator.update(
            state.allocator, allocator_key, state.decisions, self.views, clock
        )
        live, updates = live_params(actors, allocator), state.updates + 1
        after = replace(
            state,
            key=key,
            actors=actors,
            allocator=allocator,
            average=None if state.average is None else update_average(state.average, live, updates),
            updates=updates,
            credit=state.credit - self.options.collection.episodes_per_update,
        )
        return after, {**actor_metrics, **allocator_metrics}

    def clock(self, state: TrainState) -> Clock:
        """Steps, episodes and progress of the run."""
        return Clock(state.env_steps, state.episodes, jnp.clip(state.env_steps / state.planned, 0, 1))

    def _is_warm(self, state: TrainState) -> Bool[Array, ""]:
        return state.env_steps >= self.options.collection.warmup

    def is_ready_to_update(self, state: TrainState) -> Bool[Array, ""]:
        """Whether warm-up is over and enough episodes have finished since the last update."""
        return self._is_warm(state) & (state.credit >= self.options.collection.episodes_per_update)

    def _update_if_ready(self, state: TrainState) -> tuple[TrainState, Metrics]:
        """Update if the run is ready for that; the metrics are zeros if not."""
        metrics = jax.eval_shape(self.update, state)[1]

        def update(state: TrainState) -> Any:
            after, metrics = self.update(state)
            return _changed_by_update(after), metrics

        def wait(state: TrainState) -> Any:
            return _changed_by_update(state), zeros_like(metrics)

        # Only what an update changes goes through the conditional, or the replay buffers would be copied.
        changed, metrics = cond(self.is_ready_to_update(state), update, wait, state)
        return replace(state, **changed), metrics

    # ---- both

    @partial(jax.jit, static_argnums=(0, 2), donate_argnums=1)
    def chunk(self, state: TrainState, iterations: int) -> tuple[TrainState, Metrics]:
        """Alternate steps and updates. Metrics of steps are summed, those of updates averaged."""
        collection = self.options.collection
        steps = collection.steps_per_update // collection.environments
        updates_before = state.updates

        def iteration(state: TrainState, _: None) -> tuple[TrainState, Any]:
            after, of_steps = jax.lax.scan(lambda s, _: self.step(s), state, length=steps)
            state, of_update = self._update_if_ready(_add_up_episodes(state, after))
            return state, (of_steps, of_update)

        state, (of_steps, of_updates) = jax.lax.scan(iteration, state, length=iterations)
        updates = state.updates - updates_before
        return state, {
            **sum_over_devices({name: jnp.sum(value) for name, value in of_steps.items()}),
            **mean_over_devices({name: jnp.sum(value) / jnp.maximum(updates, 1) for name, value in of_updates.items()}),
            "updates": updates.astype(jnp.float32),
        }

    # ---- results

    def play_params(self, state: TrainState) -> TeamParams:
        """The parameters that play, in evaluations and as the saved policy: see `TrainingOptions.play`."""
        if state.average is not None:
            return state.average
        if self.options.play == "target":
            return {"actors": state.actors.target, "allocator": state.allocator.target}
        return live_params(state.actors, state.allocator)

    def state_like(self) -> TrainState:
        """Shapes and dtypes of the train state."""
        return jax.eval_shape(self.init, jax.random.key(0))


def live_params(actors: LearnerState, allocator: LearnerState) -> TeamParams:
    return {"actors": actors.params, "allocator": allocator.params}


def _small(numbers: Int[Array, "N A"]) -> Int[Array, "N A"]:
    """Numbers of subtasks or actions as replay stores them."""
    return numbers.astype(jnp.int8)


def _step_metrics(outcome: Outcome) -> Metrics:
    """Sums over environments, which `SUMS` in `alma/runs/metrics.py` names."""
    return {
        "episodes": jnp.sum(outcome.done, dtype=jnp.float32),
        "solved": jnp.sum(outcome.success, dtype=jnp.float32),
        "reward": jnp.sum(outcome.reward),
    }


def _add_up_episodes(before: TrainState, after: TrainState) -> TrainState:
    """The state after some steps, with the episodes of all devices: in `step`, each device counts its own."""
    own = after.episodes - before.episodes, after.credit - before.credit
    episodes, credit = sum_over_devices(own)
    return replace(after, episodes=before.episodes + episodes, credit=before.credit + credit)


def _changed_by_update(state: TrainState) -> dict[str, Any]:
    """The fields that an update changes."""
    return {name: getattr(state, name) for name in ("key", "actors", "allocator", "average", "updates", "credit")}


@lru_cache(maxsize=8)
def compile_chunk(trainer: Trainer, iterations: int) -> Callable[[TrainState], tuple[TrainState, Metrics]]:
    """`Trainer.chunk` for a number of iterations, compiled ahead of time."""
    return trainer.chunk.lower(trainer, trainer.state_like(), iterations).compile()
