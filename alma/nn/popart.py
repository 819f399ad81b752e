"""What a value network's output means: itself, or a quantity normalised by running statistics (Pop-Art)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Params = Any


@runtime_checkable
class Head(Protocol):
    """The last step from a network's raw output to a value."""

    def init(self) -> Params: ...

    def value(self, params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The value itself."""

    def error(self, params: Params, raw: Float[Array, "*n"], target: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """How far a prediction is from its target, in the units that are learned in."""

    def adapt(self, params: Params, targets: Float[Array, "*n"], weight: Float[Array, "*n"]) -> Params:
        """Take notice of new targets. Values stay what they were, except at the first ones."""


@dataclass(frozen=True)
class Plain:
    """The output is the value."""

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
    """Learns in units of the targets' running mean and deviation, with a scale and a shift of its own.

    The first targets set the statistics; the network's output has counted as normalised until then.

    The scale is kept as a logarithm, so that a value never falls where the raw output rises: a mixer stays
    monotonic.
    """

    rate: float = 0.01

    def init(self) -> Params:
        return {name: jnp.float32(value) for name, value in INITIAL.items()}

    def value(self, params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        mean, deviation = _statistics(params)
        return mean + deviation * _normalised(params, raw)

    def error(self, params: Params, raw: Float[Array, "*n"], target: Float[Array, "*n"]) -> Float[Array, "*n"]:
        mean, deviation = _statistics(params)
        return _normalised(params, raw) - (target - mean) / deviation

    def adapt(self, params: Params, targets: Float[Array, "*n"], weight: Float[Array, "*n"]) -> Params:
        total = jnp.sum(weight)
        begun = params["begun"] > 0
        rate = jnp.where(total > 0, jnp.where(begun, self.rate, 1), 0)

        def towards(old: Array, new: Array) -> Array:
            return old + rate * (jnp.sum(weight * new) / jnp.maximum(total, 1e-6) - old)

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
    """The head that the option asks for."""
    return PopArt() if popart else Plain()


INITIAL = {"log_scale": 0.0, "shift": 0.0, "mean": 0.0, "square": 1.0, "begun": 0.0}
"""Scale and shift are learned; mean, mean square, and whether there have been any targets are kept."""


def _statistics(params: Params) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean and deviation; no gradient reaches them."""
    mean, square = jax.lax.stop_gradient((params["mean"], params["square"]))
    return mean, jnp.sqrt(jnp.maximum(square - mean**2, 1e-8))


def _normalised(params: Params, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return jnp.exp(params["log_scale"]) * raw + params["shift"]
