"""Sums and means over the devices that share a run.

Each device has a share of the environments, of replay and of every batch; parameters are the same on all. Functions of
a whole batch, such as a loss or running statistics, use the functions below. In a program for a single device they
change nothing.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Tree = TypeVar("Tree")

AXIS = "devices"
"""The mesh axis over which a run is shared out."""


def is_shared() -> bool:
    """Whether the program that is being traced runs on several devices."""
    return AXIS in jax.sharding.get_abstract_mesh().manual_axes


def device_count() -> int:
    """The number of devices that share the run."""
    return jax.lax.axis_size(AXIS) if is_shared() else 1


def own_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """A key that differs between devices."""
    return jax.random.fold_in(key, jax.lax.axis_index(AXIS)) if is_shared() else key


def sum_over_devices(tree: Tree) -> Tree:
    """The sum of every array over all devices."""
    return jax.lax.psum(tree, AXIS) if is_shared() else tree


def mean_over_devices(tree: Tree) -> Tree:
    """The mean of every array over all devices. All arrays travel as one vector."""
    if not is_shared():
        return tree
    vector, unravel = ravel_pytree(tree)
    return unravel(jax.lax.pmean(vector, AXIS))


def divisor(weights: Float[Array, "*n"] | Bool[Array, "*n"]) -> Float[Array, ""] | Int[Array, ""]:
    """The divisor of a weighted sum over this device's share of a batch.

    The mean of the quotients over all devices is then the weighted mean over the whole batch. Weights that add up to
    less than 1 count as 1.
    """
    total = jnp.maximum(sum_over_devices(jnp.sum(weights)), 1)
    return total / device_count() if is_shared() else total
