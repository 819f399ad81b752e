"""A learner's state: parameters, target network, optimiser state; and one gradient step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from alma.learning.options import LearningOptions
from alma.nn.devices import mean_over_devices
from alma.nn.params import Params

AVERAGED = 0.1
"""The running average of parameters covers about this fraction of all updates so far: the latest ones."""

OWN_OPTIMISER = ("proposal", "critics")
"""The parts of the parameters that have optimisers of their own; the others share one."""

Metrics = dict[str, Float[Array, ""]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LearnerState:
    """The state of one learner, the actors or the allocator."""

    params: Params
    target: Params
    """Parameters of the target network."""
    optimiser: Any
    """Optimiser state."""
    copied: Int[Array, ""]
    """Episodes finished when the target network was last updated."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Clock:
    """Steps and episodes of a run so far."""

    env_steps: Int[Array, ""]
    episodes: Int[Array, ""]
    """Finished episodes."""
    progress: Float[Array, ""]
    """Fraction of the planned environment steps that are done, from 0 to 1."""


def begin_learner(params: Params, options: LearningOptions) -> LearnerState:
    """The learner state before its first update."""
    target = jax.tree.map(jnp.copy, params)
    return LearnerState(params, target, make_optimiser(options, params).init(params), jnp.int32(0))


def make_optimiser(options: LearningOptions, params: Params) -> optax.GradientTransformation:
    """Adam or RMSProp with clipped gradients; as in the paper, the proposal network has an optimiser of its own, so
    that large gradients of one part do not scale down those of the other. So have the critics of Thompson sampling.

    Each flattens its parameters into one vector: updating every leaf on its own would take much longer to compile.
    """
    rules = {"adam": optax.adam, "rmsprop": _rmsprop}
    rule = rules[options.optimiser](options.learning_rate)
    clipped = optax.flatten(optax.chain(optax.clip_by_global_norm(options.clip), rule))
    kinds = {name: name if name in OWN_OPTIMISER else "values" for name in params}
    return optax.partition(dict.fromkeys(kinds.values(), clipped), kinds)


def _rmsprop(learning_rate: float) -> optax.GradientTransformation:
    return optax.rmsprop(learning_rate, decay=0.99, eps=1e-5, eps_in_sqrt=False)


def gradient_step(
    learner: LearnerState,
    gradients_of: Callable[[Params], tuple[Params, Metrics]],
    options: LearningOptions,
    clock: Clock,
) -> tuple[LearnerState, Metrics]:
    """Take one gradient step, then move the target network: softly after each step, or every so many episodes.

    `gradients_of` maps parameters to the gradients of the loss, and metrics.
    """
    gradients, metrics = gradients_of(learner.params)
    gradients = mean_over_devices(gradients)
    updates, optimiser = make_optimiser(options, learner.params).update(gradients, learner.optimiser, learner.params)
    fallen = jnp.clip((clock.progress - options.falls_from) / (1 - options.falls_from), 0, 1)
    decay = 1 - (1 - options.final_rate) * fallen
    params = optax.apply_updates(learner.params, jax.tree.map(lambda update: decay * update, updates))
    moves_target = clock.episodes - learner.copied >= options.target_episodes
    target = optax.incremental_update(params, learner.target, jnp.where(moves_target, options.target_rate, 0))
    return LearnerState(params, target, optimiser, jnp.where(moves_target, clock.episodes, learner.copied)), metrics


def update_average(average: Params, params: Params, updates: Int[Array, ""]) -> Params:
    """The running average of the parameters after update number `updates`.

    It covers a fixed fraction of the updates so far, not a fixed number: as a run goes on, fluctuations of the
    parameters become slower and take more updates to average out.
    """
    return optax.incremental_update(params, average, jnp.minimum(1, 1 / (AVERAGED * updates)))
