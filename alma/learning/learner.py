"""One learner of learning: parameters, a target network that follows them, and an optimiser."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from alma.learning.options import LearningOptions

AVERAGED = 0.1
"""The share of all updates so far, the latest ones, that an average is about."""

Params = Any

Metrics = dict[str, Float[Array, ""]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LearnerState:
    """What one learner learns with."""

    params: Params
    target: Params
    optimiser: Any
    copied: Int[Array, ""]
    """Episodes played when the target was last copied."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Clock:
    """How far a run is."""

    env_steps: Int[Array, ""]
    episodes: Int[Array, ""]
    progress: Float[Array, ""]
    """From 0 to 1."""


def begin_learner(params: Params, options: LearningOptions) -> LearnerState:
    """A learner before its first update."""
    target = jax.tree.map(jnp.copy, params)
    return LearnerState(params, target, make_optimiser(options, params).init(params), jnp.int32(0))


def make_optimiser(options: LearningOptions, params: Params) -> optax.GradientTransformation:
    """Clipped Adam, or the paper's RMSProp; one for proposals and one for the rest, as in the paper: neither's large
    gradients cut the other's short.

    To each its parameters are one vector: rules for each of them would be a good part of what there is to compile.
    """
    rules = {"adam": optax.adam, "rmsprop": _rmsprop}
    rule = rules[options.optimiser](options.learning_rate)
    clipped = optax.flatten(optax.chain(optax.clip_by_global_norm(options.clip), rule))
    kinds = {name: "proposal" if name == "proposal" else "values" for name in params}
    return optax.partition(dict.fromkeys(kinds.values(), clipped), kinds)


def _rmsprop(learning_rate: float) -> optax.GradientTransformation:
    return optax.rmsprop(learning_rate, decay=0.99, eps=1e-5, eps_in_sqrt=False)


def learn(
    learner: LearnerState,
    loss: Callable[[Params], tuple[Float[Array, ""], Metrics]],
    options: LearningOptions,
    clock: Clock,
) -> tuple[LearnerState, Metrics]:
    """One gradient step; then the target network follows, a little every time or wholly from time to time."""
    gradients, metrics = jax.grad(loss, has_aux=True)(learner.params)
    updates, optimiser = make_optimiser(options, learner.params).update(gradients, learner.optimiser, learner.params)
    slower = 1 - (1 - options.final_rate) * clock.progress
    params = optax.apply_updates(learner.params, jax.tree.map(lambda update: slower * update, updates))
    due = clock.episodes - learner.copied >= options.target_episodes
    target = optax.incremental_update(params, learner.target, jnp.where(due, options.target_rate, 0))
    return LearnerState(params, target, optimiser, jnp.where(due, clock.episodes, learner.copied)), metrics


def follow(average: Params, params: Params, updates: Int[Array, ""]) -> Params:
    """The average of parameters after one more update, of so many.

    It looks back on a part of the run, not on a number of updates: what is noise grows slower as a run goes on.
    """
    return optax.incremental_update(params, average, jnp.minimum(1, 1 / (AVERAGED * updates)))
