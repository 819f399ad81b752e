"""The networks of the actors as functions of parameters, and how they are built from options."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.actors.mixer import Independent, Mixer, Qmix, Sum, SumAndValue
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.scope import Scope, Sight
from alma.actors.utility import Utility
from alma.nn.attention import Attention, Pooling
from alma.nn.params import Params
from alma.nn.popart import Head, make_head
from alma.play.situation import Strategy
from alma.task.spec import TaskSpec
from alma.task.view import View, select_features


@dataclass(frozen=True)
class ActorNetworks:
    """The networks of the low level, as functions of parameters."""

    scope: Scope
    utility: Any
    """Flax module: utilities of all actions."""
    mixer: Any
    """Flax module: values from utilities."""
    head: Head
    features: tuple[int, ...]
    """Indices of the entity features that the networks see."""

    def init(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Params:
        utility_key, mixer_key = jax.random.split(key)
        sight = self.look(key, view, allocation)
        utilities = jnp.zeros((*allocation.shape[:-1], 1, allocation.shape[-1]))
        return {
            "utility": self.utility.init(utility_key, sight.view, sight.utility_mask[..., None, :, :], allocation),
            "mixer": self.mixer.init(mixer_key, utilities, sight, sight.mixer_mask[..., None, :, :], allocation),
            "head": self.head.init(),
        }

    def look(self, key: PRNGKeyArray, view: View, allocation: Int[Array, "*b A"]) -> Sight:
        """The inputs of the networks in a situation."""
        return self.scope.look(key, select_features(view, self.features), allocation)

    def advise(self, params: Params, key: PRNGKeyArray, view: View) -> Strategy:
        """Strategies sampled from the coach at a decision point; None without a coach."""
        return None

    def advise_best(self, params: Params, key: PRNGKeyArray, view: View) -> Strategy:
        """The coach's mean strategies, for evaluation; None without a coach."""
        return None

    def utilities(
        self, params: Params, sight: Sight, last_action: Int[Array, "*b A"], strategy: Strategy = None
    ) -> Float[Array, "*b A U"]:
        """The utility of every action of every agent."""
        masks = sight.utility_mask[..., None, :, :]
        return self.utility.apply(params["utility"], sight.view, masks, last_action, strategy)[..., 0, :, :]

    def chosen_utilities(
        self,
        params: Params,
        masks: Bool[Array, "*b G A E"],
        sight: Sight,
        last_action: Int[Array, "*b A"],
        action: Int[Array, "*b A"],
        strategy: Strategy = None,
    ) -> Float[Array, "*b G A"]:
        """The utility of one action of every agent, under each of G attention masks."""
        return self.utility.apply(params["utility"], sight.view, masks, last_action, strategy, action)[..., 0]

    def mix(
        self, params: Params, chosen: Float[Array, "*b A"], sight: Sight, last_action: Int[Array, "*b A"]
    ) -> Float[Array, "*b V"]:
        """Raw outputs of the mixer, given the utilities of the chosen actions; the head turns them into values."""
        return self.mix_groups(params, chosen[..., None, :], sight, sight.mixer_mask[..., None, :, :], last_action)

    def mix_groups(
        self,
        params: Params,
        chosen: Float[Array, "*b G A"],
        sight: Sight,
        groups: Bool[Array, "*b G A E"],
        last_action: Int[Array, "*b A"],
    ) -> Float[Array, "*b V"]:
        """`mix` with utilities under each of G masks."""
        return self.mixer.apply(params["mixer"], chosen, sight, groups, last_action)

    def per_value(self, quantities: Float[Array, "*b K"], sight: Sight) -> Float[Array, "*b V"]:
        """Map quantities of the K sets of agents, such as rewards, to the V values that are learned."""
        return self.mixer.per_value(quantities, sight.members)


def greedy(values: Float[Array, "*b A U"], available: Bool[Array, "*b A U"]) -> Int[Array, "*b A"]:
    """Each agent's available action of highest value."""
    return jnp.argmax(jnp.where(available, values, -jnp.inf), axis=-1)


def make_trunk(options: ActorNetworkOptions, things: int | None, spec: TaskSpec) -> Attention | Pooling:
    """The trunk that the options ask for. Pooling sees at most `things` non-agent entities (None: all)."""
    if options.trunk == "pooling":
        most = spec.entities - spec.agents if things is None else things
        return Pooling(options.width, things, options.normalise, most, spec.agents)
    return Attention(options.width, options.heads, options.relations)


def make_mixer(options: ActorNetworkOptions, things: int | None, spec: TaskSpec) -> Mixer:
    """The mixer that the options ask for."""
    actions = len(spec.actions)
    if options.mixer == "sum-and-value":
        trunk = make_trunk(replace(options, width=options.mixer_width), things, spec)
        return SumAndValue(trunk, actions, options.mixer_width)
    if options.mixer == "qmix":
        return Qmix(
            actions=actions,
            width=options.mixer_width,
            hyper_width=options.hyper_width,
            heads=options.heads,
            weights=options.mixing,
            offsets=options.offsets,
            use_relations=options.relations,
        )
    return Sum() if options.mixer == "sum" else Independent()


def make_networks(spec: TaskSpec, options: ActorOptions, scope: Scope) -> ActorNetworks:
    """The networks that the options ask for."""
    sizes, actions = options.networks, len(spec.actions)
    return ActorNetworks(
        scope,
        utility=Utility(make_trunk(sizes, scope.things, spec), sizes.hidden, actions, sizes.aim, scope.targets),
        mixer=make_mixer(sizes, scope.things, spec),
        head=make_head(options.popart),
        features=spec.features_seen(sizes.places),
    )
