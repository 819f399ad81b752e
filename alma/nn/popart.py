"""Output heads of value networks: the raw output is the value itself, or a normalised value (PopArt)."""

from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from alma.nn.devices import sum_over_devices
from alma.nn.params import Params


@runtime_checkable
class Head(Protocol):
    """Turns the raw output of a network into a value."""

    def init(self) -> Params:
        """The initial parameters of the head."""

    def value(self, params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The value that a raw output stands for, in units of the rewards."""

    def error(self, params: Params, raw: Float[Array, "*n"], target: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The prediction minus its target, in the (normalised) units of the loss."""

    def adapt(self, params: Params, targets: Float[Array, "*n"], weight: Float[Array, "*n"]) -> Params:
        """Update the running statistics with new targets. All values are preserved, except at the first update."""


@dataclass(frozen=True)
class Plain:
    """The raw output is the value."""

    def init(self) -> Params:
        return {}

    def value(self, params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return raw

    def error(self, params: Params, raw: Float[Array, "*n"], target: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return raw - target

    def adapt(self, params: Params, targets: Float[Array, "*n"], weight: Float[Array, "*n"]) -> Params:
        return params


@dataclass(frozen=True)
class PopArt:
    """PopArt: learns values normalised by the running mean and standard deviation of the targets.

    A learned scale and shift are applied to the raw output, and corrected whenever the statistics change, so that
    values are preserved. Only the first targets do not preserve them: they set the statistics.

    The scale is stored as its logarithm and so stays positive: a mixer remains monotonic.
    """

    rate: float = 0.01
    """Step size of the running statistics."""

    def init(self) -> Params:
        return {name: jnp.float32(value) for name, value in INITIAL.items()}

    def value(self, params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        mean, deviation = _statistics(params)
        return mean + deviation * _normalised(params, raw)

    def error(self, params: Params, raw: Float[Array, "*n"], target: Float[Array, "*n"]) -> Float[Array, "*n"]:
        mean, deviation = _statistics(params)
        return _normalised(params, raw) - (target - mean) / deviation

    def adapt(self, params: Params, targets: Float[Array, "*n"], weight: Float[Array, "*n"]) -> Params:
        total = sum_over_devices(jnp.sum(weight))
        begun = params["begun"] > 0
        rate = jnp.where(total > 0, jnp.where(begun, self.rate, 1), 0)

        def towards(old: Array, new: Array) -> Array:
            return old + rate * (sum_over_devices(jnp.sum(weight * new)) / jnp.maximum(total, 1e-6) - old)

        moved = {
            **params,
            "mean": towards(params["mean"], targets),
            "square": towards(params["square"], targets**2),
            "begun": jnp.where(total > 0, 1.0, params["begun"]),
        }
        new_mean, new_deviation = _statistics(moved)
        old_mean, old_deviation = jax.tree.map(partial(jnp.where, begun), _statistics(params), _statistics(moved))
        ratio = old_deviation / new_deviation
        shift = (old_deviation * params["shift"] + old_mean - new_mean) / new_deviation
        return {**moved, "log_scale": params["log_scale"] + jnp.log(ratio), "shift": shift}


def make_head(popart: bool) -> Head:
    """`PopArt`, or `Plain` without it."""
    return PopArt() if popart else Plain()


INITIAL = {"log_scale": 0.0, "shift": 0.0, "mean": 0.0, "square": 1.0, "begun": 0.0}
"""Initial parameters: learned scale and shift, running mean and mean square, and whether there were any targets yet."""


def _statistics(params: Params) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Running mean and standard deviation, with gradients stopped."""
    mean, square = jax.lax.stop_gradient((params["mean"], params["square"]))
    return mean, jnp.sqrt(jnp.maximum(square - mean**2, 1e-8))


def _normalised(params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return jnp.exp(params["log_scale"]) * raw + params["shift"]
