"""The low level as a whole: what it is made of, how it acts, and how it learns from replay."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma import replay
from alma.choice import choose_uniformly
from alma.learning.level import Clock, Figures, Level, Params, begin_level, learn
from alma.learning.qmix import ActorNetworks, actor_batch, greedy, qmix_loss
from alma.networks.attention import Attention, Pooling
from alma.networks.mixer import Qmix, Sum
from alma.networks.popart import make_head
from alma.networks.utility import Utility
from alma.presets import ActorOptions
from alma.rollout import Situation
from alma.task import Actions, TaskSpec, View


class Wildness(NamedTuple):
    """How much actors explore."""

    share: Float[Array, ""]
    """Of random actions."""
    persistence: float
    """The chance that a random action is repeated."""

    @property
    def start(self) -> Float[Array, ""]:
        """The chance that an agent that does not repeat itself acts at random, so that the share is what it is."""
        return self.share * (1 - self.persistence) / (1 - self.share * self.persistence)


@dataclass(frozen=True)
class Actors:
    """Agents that work on the subtask they were given."""

    spec: TaskSpec
    options: ActorOptions

    @cached_property
    def networks(self) -> ActorNetworks:
        options = self.options.networks
        trunk: Attention | Pooling = Attention(options.width, options.heads, options.relations)
        if options.trunk == "pooling":
            trunk = Pooling(options.width, self.spec.things_per_subtask)
        mixer: Sum | Qmix = Qmix(options.mixer_width, options.hyper_width, options.heads, options.mixing)
        if options.mixer == "sum":
            mixer = Sum()
        utility = Utility(trunk, options.hidden, len(self.spec.actions))
        return ActorNetworks(
            utility,
            mixer,
            make_head(self.options.popart),
            self.spec.mask_subtask_actions,
            self.spec.features_seen(options.places),
        )

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "N A"]) -> Level:
        return begin_level(self.networks.init(key, view, allocation, self.spec.subtasks), self.options)

    def act(
        self,
        params: Params,
        key: PRNGKeyArray,
        view: View,
        allocation: Int[Array, "N A"],
        last_action: Int[Array, "N A"],
        was_wild: Bool[Array, "N A"],
        wildness: Wildness,
    ) -> tuple[Int[Array, "N A"], Bool[Array, "N A"]]:
        """Best actions and random ones, and which are random."""
        random_key, repeat_key, start_key = jax.random.split(key, 3)
        available = self.networks.available(view, allocation)
        values = self.networks.utilities(params, view, allocation, last_action)
        repeatable = jnp.take_along_axis(available, jnp.maximum(last_action, 0)[..., None], axis=-1)[..., 0]
        repeats = was_wild & repeatable & (jax.random.uniform(repeat_key, was_wild.shape) < wildness.persistence)
        starts = jax.random.uniform(start_key, was_wild.shape) < wildness.start
        random = jnp.where(repeats, last_action, choose_uniformly(random_key, available))
        wild = repeats | starts
        return jnp.where(wild, random, greedy(values, available)), wild

    def greedy(self, params: Params, key: PRNGKeyArray, situation: Situation) -> Actions:
        """Everybody's best available action."""
        values = self.values(params, situation)
        return greedy(values, self.networks.available(situation.view, jnp.asarray(situation.allocation)))

    def values(self, params: Params, situation: Situation) -> Float[Array, "A U"]:
        """Everybody's utility of every action."""
        return self.networks.utilities(
            params, situation.view, jnp.asarray(situation.allocation), jnp.asarray(situation.last_action)
        )

    def update(
        self,
        level: Level,
        key: PRNGKeyArray,
        steps: replay.Steps,
        view_of: Callable[[Any], View],
        clock: Clock,
    ) -> tuple[Level, Figures]:
        """One step of learning from replay."""
        options = self.options
        windows = replay.sample_windows(key, steps, options.batch, options.window + options.n_step)
        batch = actor_batch(
            level.params,
            level.target,
            self.networks,
            view_of,
            replay.unfold(windows, options.n_step + 1),
            options.gamma,
            options.reward_scale,
        )
        head = self.networks.head.adapt(level.params["head"], batch.target, batch.counts)
        level = replace(level, params={**level.params, "head": head})
        return learn(level, lambda params: qmix_loss(params, self.networks, batch), options, clock)
