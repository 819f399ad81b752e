"""COPA: flat actors and a coach, which sees everything and gives each agent a strategy at every decision point.

All networks are trained together by the loss of the actors. Two more terms make strategies influence the actions: a
recogniser must be able to infer a strategy from the actions, and the entropy of strategies is kept up.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.actors import Actors
from alma.actors.coach import Coach, Gaussian, Recogniser
from alma.actors.networks import ActorNetworks, make_networks, make_trunk
from alma.actors.qmix import ActorBatch
from alma.actors.scope import Labelled, Sight
from alma.learning.learner import Metrics
from alma.nn.devices import divisor
from alma.nn.params import Params
from alma.task.view import NOBODY, View, select_features

ENTROPY_SHARE = 0.1
"""Weight of the entropy of strategies, as a fraction of the weight of the recognition loss."""


@dataclass(frozen=True)
class CoachedNetworks(ActorNetworks):
    """The networks of flat actors, a coach and a recogniser of strategies."""

    labels: Labelled
    """The scope of the coach: it sees which subtask each entity belongs to."""
    coach: Any
    """Flax module that outputs strategies."""
    recogniser: Any
    """Flax module that infers strategies from actions."""

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Params:
        actor_key, coach_key, recogniser_key = jax.random.split(key, 3)
        sight = self.look_as_coach(key, view)
        return {
            **super().init(actor_key, view, allocation),
            "coach": self.coach.init(coach_key, sight.view, sight.mixer_mask),
            "recogniser": self.recogniser.init(recogniser_key, sight.view, sight.mixer_mask, allocation),
        }

    def look_as_coach(self, key: PRNGKeyArray, view: View) -> Sight:
        """The input of coach and recogniser: all entities, labelled with their subtasks; no agent is allocated."""
        seen = select_features(view, self.features)
        nobody = jnp.full(view.visible.shape[:-1], NOBODY)
        return self.labels.look(key, seen, nobody)

    def strategies(self, params: Params, key: PRNGKeyArray, view: View) -> Gaussian:
        """The distribution of each agent's strategy."""
        sight = self.look_as_coach(key, view)
        return self.coach.apply(params["coach"], sight.view, sight.mixer_mask)

    def advise(self, params: Params, key: PRNGKeyArray, view: View) -> Float[Array, "*b A H"]:
        look_key, draw_key = jax.random.split(key)
        return self.strategies(params, look_key, view).draw(draw_key)

    def advise_best(self, params: Params, key: PRNGKeyArray, view: View) -> Float[Array, "*b A H"]:
        return self.strategies(params, key, view).mean

    def recognise(self, params: Params, key: PRNGKeyArray, view: View, actions: Int[Array, "*b A"]) -> Gaussian:
        """The distribution of each agent's strategy, inferred from the actions."""
        sight = self.look_as_coach(key, view)
        return self.recogniser.apply(params["recogniser"], sight.view, sight.mixer_mask, actions)


@dataclass(frozen=True)
class CoachedActors(Actors):
    """Flat actors with a coach (COPA)."""

    is_coached: ClassVar[bool] = True

    @cached_property
    def networks(self) -> CoachedNetworks:
        options, labels = self.options.networks, Labelled(self.spec)
        trunk = make_trunk(options, labels.things, self.spec)
        return CoachedNetworks(
            **vars(make_networks(self.spec, self.options, self.scope)),
            labels=labels,
            coach=Coach(trunk, options.hidden),
            recogniser=Recogniser(trunk, options.hidden, len(self.spec.actions)),
        )

    @property
    def portion(self) -> int:
        """All rows: strategies are drawn for the whole batch."""
        return self.options.batch * self.options.window

    def loss(self, params: Params, key: PRNGKeyArray, batch: ActorBatch) -> tuple[Float[Array, ""], Metrics]:
        value_key, coach_key, draw_key, recognise_key = jax.random.split(key, 4)
        advice = self.networks.strategies(params, coach_key, batch.decision_view)
        strategy = advice.draw(draw_key)
        loss, metrics = self.value_loss(params, value_key, batch, strategy)
        guess = self.networks.recognise(params, recognise_key, batch.view, batch.action)
        present = batch.view.present[:, : self.spec.agents]
        recognition, entropy = recognition_loss(guess, strategy, present), mean_entropy(advice, present)
        total = loss + self.options.advice * (recognition - ENTROPY_SHARE * entropy)
        return total, {**metrics, "recognition_loss": recognition, "strategy_entropy": entropy}


def recognition_loss(guess: Gaussian, strategy: Float[Array, "B A H"], present: Bool[Array, "B A"]) -> Float[Array, ""]:
    """Negative log-likelihood of the strategies under the recogniser's guess, clipped in each dimension."""
    log_density = jnp.clip(guess.log_density(strategy), -1000, 0)
    return -_mean_over_agents(jnp.sum(log_density, axis=-1), present)


def mean_entropy(advice: Gaussian, present: Bool[Array, "B A"]) -> Float[Array, ""]:
    """Mean entropy of the strategies, clipped below at 0 in each dimension: narrower is not penalised further."""
    return _mean_over_agents(jnp.sum(jnp.maximum(advice.entropy(), 0), axis=-1), present)


def _mean_over_agents(values: Float[Array, "B A"], present: Bool[Array, "B A"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(present, values, 0)) / divisor(present)
