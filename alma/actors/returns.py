"""Returns: rewards summed over several steps, from which values are learned."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from alma.learning.replay import Step


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Returns:
    """n-step returns of windows, as long as their first allocation is kept, and where to bootstrap."""

    rewards: Float[Array, "B K"]
    """Discounted sums of rewards."""
    steps: Int[Array, "B"]
    """Number of rewards summed; bootstrap from the state after so many steps. 0: nothing can be learned here."""
    ended: Bool[Array, "B"]
    """Whether the episode ended with the last of these steps, terminated or truncated."""
    terminated: Bool[Array, "B"]
    """Whether it terminated."""


def n_step_returns(steps: Step, lost: Bool[Array, "T B"], gamma: float) -> Returns:
    """Sum discounted rewards until the allocation changes or the episode ends, at most over all but the last step.

    Summing stops before a step marked `lost`: its next state is needed and no longer in replay.
    """
    length, batch = steps.terminated.shape
    going = jnp.ones(batch, bool)
    rewards = jnp.zeros_like(steps.rewards[0])
    count = jnp.zeros(batch, jnp.int32)
    ended = terminated = jnp.zeros(batch, bool)
    for t in range(length - 1):
        same = jnp.all(steps.allocation[t] == steps.allocation[0], axis=-1)
        used = going & same & ~lost[t]
        rewards += gamma**t * jnp.where(used[:, None], steps.rewards[t], 0)
        count += used
        terminated |= used & steps.terminated[t]
        ended |= used & (steps.terminated[t] | steps.truncated[t])
        going = used & ~ended
    return Returns(rewards, count, ended, terminated)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bootstrap:
    """What the one-step targets of transitions bootstrap from. Lambda-returns replace part of it by later rewards."""

    value: Float[Array, "B V"]
    """The value of the next situation under the allocation of the transition."""
    discount: Float[Array, "B V"]
    """Its factor in the target; 0 where the value has ended."""
    members: Float[Array, "B A K"]
    """The agents that contribute to each value in the transition's first situation."""
    next_members: Float[Array, "B A K"]
    """Those of them who still do in the next situation, under the same allocation."""


def lambda_returns(
    targets: Float[Array, "T B V"],
    bootstrap: Bootstrap,
    continues: Bool[Array, "T B V"],
    decay: float,
) -> Float[Array, "T B V"]:
    """Peng's Q(lambda): one-step targets of consecutive transitions, whose bootstrap values are mixed with the return
    of the next transition in proportion to `decay`, where that transition continues the same value.

    `bootstrap` has T x B rows, as the targets have when flattened. The last transitions of windows keep their targets.
    """
    shape = targets.shape
    parts = (targets, bootstrap.value.reshape(shape), bootstrap.discount.reshape(shape), continues)

    def mix(later: Float[Array, "B V"], part: tuple[Array, ...]) -> tuple[Array, Array]:
        target, value, discount, goes_on = part
        mixed = target + jnp.where(goes_on, decay * discount * (later - value), 0)
        return mixed, mixed

    return jax.lax.scan(mix, jnp.zeros_like(targets[0]), parts, reverse=True)[1]


def same_value_continues(
    bootstrap: Bootstrap, ended: Bool[Array, "T B"], learned: Bool[Array, "T B V"]
) -> Bool[Array, "T B V"]:
    """Which transitions are continued by the next one of their window: in the same episode, with the same agents
    contributing to the value, and where the value is still learned. The last one of a window never is.
    """
    steps, batch = ended.shape
    members, next_members = (
        rows.reshape(steps, batch, *rows.shape[1:]) for rows in (bootstrap.members, bootstrap.next_members)
    )
    same = jnp.all(members[1:] == next_members[:-1], axis=-2)
    inner = same & ~ended[:-1, :, None] & learned[1:]
    return jnp.concatenate([inner, jnp.zeros_like(learned[:1])])
