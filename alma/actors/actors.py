"""The low level as a whole: its networks, how it acts, and how it learns from replay."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.networks import ActorNetworks, greedy, make_networks
from alma.actors.options import ActorOptions
from alma.actors.qmix import ActorBatch, actor_batch, qmix_loss, with_lambda_returns
from alma.actors.refil import imagine_groups, refil_loss
from alma.actors.scope import Scope
from alma.learning import replay
from alma.learning.learner import Clock, LearnerState, Metrics, begin_learner, gradient_step
from alma.learning.portions import map_portions, sum_portions
from alma.nn.devices import divisor
from alma.nn.params import Params
from alma.play.decisions import apply_where
from alma.play.situation import ActionValues, Situation, Strategy
from alma.task.choice import choose_uniformly
from alma.task.spec import TaskSpec
from alma.task.view import Actions, View

PORTION = 256
"""Rows of a batch that attention computes at a time: the intermediate values of more do not fit into the caches of a
processor, which takes a quarter longer."""


class ActionExploration(NamedTuple):
    """Epsilon-greedy exploration in which random actions may be repeated for several steps."""

    epsilon: Float[Array, ""]
    """The fraction of actions that are random."""
    persistence: float
    """Probability that an agent repeats its last action if that was random."""

    @property
    def draw_probability(self) -> Float[Array, ""]:
        """Probability that an agent that does not repeat an action draws a random one.

        Chosen so that in the long run the fraction `epsilon` of all actions is random, whatever the persistence.
        """
        return self.epsilon * (1 - self.persistence) / (1 - self.epsilon * self.persistence)


@dataclass(frozen=True)
class Actors:
    """Actors that learn by Q-learning of mixed utilities, optionally with REFIL's imagined groups."""

    spec: TaskSpec
    options: ActorOptions
    scope: Scope
    """What they see under an allocation, and which values they learn."""
    training_period: int
    """N_t in training: maximum number of steps between two allocations."""

    is_coached: ClassVar[bool] = False

    @cached_property
    def networks(self) -> ActorNetworks:
        """Utilities, mixer and head, as functions of parameters."""
        return make_networks(self.spec, self.options, self.scope)

    @property
    def knows_subtasks(self) -> bool:
        return self.scope.knows_subtasks

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> LearnerState:
        """The learner state before the first update. Only the shapes of the view and allocation matter."""
        return begin_learner(self.networks.init(key, view, allocation), self.options)

    def act(
        self,
        params: Params,
        key: PRNGKeyArray,
        situations: Situation,
        explored: Bool[Array, "N A"],
        exploration: ActionExploration,
    ) -> tuple[Int[Array, "N A"], Bool[Array, "N A"]]:
        """Epsilon-greedy actions, and the mask of the random ones. `explored` is that mask at the last step."""
        value_key, random_key, repeat_key, draw_key = jax.random.split(key, 4)
        last_action = jnp.asarray(situations.last_action)
        available = self._available(situations)
        values = self.values(params, value_key, situations)
        repeatable = jnp.take_along_axis(available, jnp.maximum(last_action, 0)[..., None], axis=-1)[..., 0]
        repeats = explored & repeatable & (jax.random.uniform(repeat_key, explored.shape) < exploration.persistence)
        draws = jax.random.uniform(draw_key, explored.shape) < exploration.draw_probability
        random = jnp.where(repeats, last_action, choose_uniformly(random_key, available))
        explores = repeats | draws
        return jnp.where(explores, random, greedy(values, available)), explores

    def greedy(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Actions:
        """Each agent's available action of highest utility."""
        return greedy(self.values(params, key, situation), self._available(situation))

    def values(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Float[Array, "*b A U"]:
        """The utility of every action of every agent."""
        sight = self.networks.look(key, situation.view, jnp.asarray(situation.allocation))
        return self.networks.utilities(params, sight, jnp.asarray(situation.last_action), situation.strategy)

    def advise(self, params: Params, key: PRNGKeyArray, situations: Situation, due: Bool[Array, "N"]) -> Strategy:
        """New strategies of the coach where a decision is due, the current ones elsewhere; None without a coach."""

        def fresh(portion: Int[Array, ""], view: View) -> Strategy:
            return self.networks.advise(params, jax.random.fold_in(key, portion), view)

        return apply_where(due, fresh, situations.view, situations.strategy)

    def advise_best(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Strategy:
        """The coach's mean strategy for each agent; None without a coach."""
        return self.networks.advise_best(params, key, situation.view)

    def explain_actions(self, params: Params, key: PRNGKeyArray, situation: Situation) -> ActionValues:
        """The utilities of all actions, which of them are available, and the entities that each agent attends to."""
        sight = self.networks.look(key, situation.view, jnp.asarray(situation.allocation))
        return ActionValues(self.values(params, key, situation), self._available(situation), sight.utility_mask)

    def _available(self, situation: Situation) -> Bool[Array, "*b A U"]:
        return self.scope.available(situation.view, jnp.asarray(situation.allocation))

    def update(
        self,
        learner: LearnerState,
        key: PRNGKeyArray,
        steps: replay.Steps,
        view_of: Callable[[Any], View],
        clock: Clock,
    ) -> tuple[LearnerState, Metrics]:
        """One gradient step on a batch from replay."""
        options = self.options
        window_key, batch_key, loss_key = jax.random.split(key, 3)
        windows = replay.sample_windows(
            window_key, steps, options.batch, options.window + options.n_step, max_since_decision=self.training_period
        )
        transitions = replay.unfold(windows, options.n_step + 1)
        make_batch = partial(
            actor_batch,
            learner.params,
            learner.target,
            self.networks,
            view_of,
            batch_key,
            gamma=options.gamma,
            reward_scale=options.reward_scale,
            value_ends=options.ends,
            next_allocation=options.next_allocation,
        )
        batch = map_portions(make_batch, transitions, self.portion, axis=1)
        if options.trace_decay:
            ended = (windows.steps.terminated | windows.steps.truncated)[: options.window]
            batch = with_lambda_returns(batch, ended, options.trace_decay)
        batch = replace(batch, bootstrap=None)
        head = self.networks.head.adapt(learner.params["head"], batch.target, batch.weights)
        learner = replace(learner, params={**learner.params, "head": head})
        return gradient_step(learner, lambda params: self.gradients(params, loss_key, batch), options, clock)

    @property
    def portion(self) -> int:
        """Rows of a batch that are computed at a time: `PORTION`, or all where that is faster or draws are made for the
        whole batch (REFIL's groups)."""
        networks, options = self.options.networks, self.options
        attends = networks.trunk == "attention" or networks.mixer == "qmix"
        return PORTION if attends and not options.imagination else options.batch * options.window

    def gradients(self, params: Params, key: PRNGKeyArray, batch: ActorBatch) -> tuple[Params, Metrics]:
        """The gradients of the loss, and metrics. Both are weighted means over the batch."""

        def of_portion(portion: ActorBatch) -> tuple[Params, Metrics]:
            share = divisor(portion.weights) / divisor(batch.weights)
            results = jax.grad(self.loss, has_aux=True)(params, key, portion)
            return jax.tree.map(lambda part: share * part, results)

        return sum_portions(of_portion, batch, self.portion)

    def loss(self, params: Params, key: PRNGKeyArray, batch: ActorBatch) -> tuple[Float[Array, ""], Metrics]:
        """The loss to minimise, and metrics. Subclasses may override it."""
        return self.value_loss(params, key, batch, None)

    def value_loss(
        self, params: Params, key: PRNGKeyArray, batch: ActorBatch, strategy: Strategy
    ) -> tuple[Float[Array, ""], Metrics]:
        """The TD loss of the mixed values, interpolated with that of imagined groups if imagination is not 0."""
        look_key, group_key = jax.random.split(key)
        sight = self.networks.look(look_key, batch.view, batch.allocation)
        share, masks = self.options.imagination, sight.utility_mask[:, None]
        groups = self._groups(group_key, masks) if share else masks[:, :0]
        masks = jnp.concatenate([masks, masks & groups], axis=1)
        chosen = self.networks.chosen_utilities(params, masks, sight, batch.last_action, batch.action, strategy)
        loss, metrics = qmix_loss(params, self.networks, batch, sight, chosen[:, 0])
        if not share:
            return loss, metrics
        imagined = refil_loss(params, self.networks, batch, sight, groups, chosen[:, 1:])
        return (1 - share) * loss + share * imagined, {**metrics, "imagined_loss": imagined}

    def _groups(self, key: PRNGKeyArray, masks: Bool[Array, "B 1 A E"]) -> Bool[Array, "B 2 A E"]:
        """Random groups for REFIL, the same for all transitions of a window.

        A batch holds the first transitions of all windows, then the second ones, and so on.
        """
        rows, _, agents, entities = masks.shape
        groups = imagine_groups(key, rows // self.options.window, agents, entities)
        return jnp.tile(groups, (self.options.window, 1, 1, 1))
