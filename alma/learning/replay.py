"""What is remembered: states, not features, in two rings. Steps are for the actors, decisions for the allocator."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Tree = TypeVar("Tree")


def pick(tree: Tree, *index: Int[Array, "*#n"]) -> Tree:
    """Rows by their places along the leading axes of everything. Places must be there: nothing looks for negative ones,
    which would more than double what there is to compile."""
    return jax.tree.map(lambda leaf: leaf.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False), tree)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Step:
    """One step of one environment."""

    state: Any
    allocation: Int[Array, "*b A"]
    last_action: Int[Array, "*b A"]
    action: Int[Array, "*b A"]
    rewards: Float[Array, "*b K"]
    """Of the values that actors learn."""
    terminated: Bool[Array, "*b"]
    truncated: Bool[Array, "*b"]
    since_decision: Int[Array, "*b"]
    """Steps since the allocation was decided on."""
    end: Int[Array, "*b"]
    """How many episodes had ended before the one that ended with this step; it is set when the step is written."""


STEPS_PER_END = 8
"""There is room for the last state of one episode for so many steps in replay."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Steps:
    """A ring of the last T steps of N environments, time first, and one of the states in which episodes ended."""

    rows: Step
    """T x N of everything."""
    count: Int[Array, ""]
    """Rows of N written so far."""
    ends: Any
    """The last states of the latest episodes, which no step begins in: K rows."""
    ended: Int[Array, ""]
    """Episodes ended so far."""

    @property
    def length(self) -> int:
        return self.rows.terminated.shape[0]

    @property
    def ends_kept(self) -> int:
        return jax.tree.leaves(self.ends)[0].shape[0]


def empty_steps(example: Step, length: int) -> Steps:
    """A ring for steps that look like the example (N rows)."""
    environments = example.terminated.shape[0]
    kept = max(environments, length * environments // STEPS_PER_END)
    return Steps(
        rows=jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), example),
        count=jnp.int32(0),
        ends=jax.tree.map(lambda leaf: jnp.zeros((kept, *leaf.shape[1:]), leaf.dtype), example.state),
        ended=jnp.int32(0),
    )


def add_step(steps: Steps, step: Step, reached: Any) -> Steps:
    """Write one step of all environments over the oldest, and the states reached by it where episodes ended."""
    done = step.terminated | step.truncated
    end = steps.ended + jnp.cumsum(done) - done
    at, end_at = steps.count % steps.length, jnp.where(done, end % steps.ends_kept, steps.ends_kept)
    return Steps(
        rows=jax.tree.map(
            lambda ring, row: ring.at[at].set(row, wrap_negative_indices=False), steps.rows, replace(step, end=end)
        ),
        count=steps.count + 1,
        # Where no episode ended, the place is out of range, and nothing is written.
        ends=jax.tree.map(
            lambda ring, row: ring.at[end_at].set(row, mode="drop", wrap_negative_indices=False), steps.ends, reached
        ),
        ended=steps.ended + jnp.sum(done),
    )


class Windows(NamedTuple):
    """Steps that follow each other in one environment, T x B of everything. They may run across ends of episodes."""

    steps: Step
    decided: Any
    """The states in which the allocations of the steps were decided on."""
    reached: Any
    """The states that episodes ended in; of steps that ended none, any state."""
    kept: Bool[Array, "T B"]
    """Whether the state that an episode ended in with this step is still there."""


def sample_windows(key: PRNGKeyArray, steps: Steps, batch: int, length: int, before: int) -> Windows:
    """Windows of `length` steps, whose allocations were decided on `before` steps ago at the most.

    There must be `length + before` rows.
    """
    time_key, env_key = jax.random.split(key)
    filled = jnp.minimum(steps.count, steps.length)
    newest_start = steps.count - length
    starts = newest_start - jax.random.randint(time_key, (batch,), 0, filled - length - before + 1)
    environments = jax.random.randint(env_key, (batch,), 0, steps.rows.terminated.shape[1])
    times = starts[None, :] + jnp.arange(length)[:, None]
    rows = pick(steps.rows, times % steps.length, environments)
    decided = (times - rows.since_decision) % steps.length
    return Windows(
        steps=rows,
        decided=pick(steps.rows.state, decided, environments),
        reached=pick(steps.ends, rows.end % steps.ends_kept),
        kept=(rows.terminated | rows.truncated) & (rows.end >= steps.ended - steps.ends_kept),
    )


def unfold(windows: Tree, length: int) -> Tree:
    """All windows of `length` steps within longer windows, side by side: `length` x (starts * batch)."""

    def slide(leaf: Array) -> Array:
        starts = leaf.shape[0] - length + 1
        rows = jnp.stack([leaf[first : first + starts] for first in range(length)])
        return rows.reshape(length, -1, *leaf.shape[2:])

    return jax.tree.map(slide, windows)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Decision:
    """A transition between two decision points of one environment."""

    state: Any
    previous: Int[Array, "*b A"]
    """The allocation that this decision replaced."""
    allocation: Int[Array, "*b A"]
    reward: Float[Array, "*b"]
    """Added up in between."""
    next_state: Any
    terminated: Bool[Array, "*b"]
    made_at: Int[Array, "*b"]
    """Environment steps made when it was stored."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Decisions:
    """A ring of decisions for each of N environments, which make them at their own times."""

    rows: Decision
    """N x K of everything."""
    count: Int[Array, "N"]
    """Decisions written so far."""

    @property
    def length(self) -> int:
        return self.rows.terminated.shape[1]


def empty_decisions(example: Decision, length: int) -> Decisions:
    """Rings for decisions that look like the example (N rows)."""

    def room(leaf: Array) -> Array:
        return jnp.zeros((leaf.shape[0], length, *leaf.shape[1:]), leaf.dtype)

    return Decisions(jax.tree.map(room, example), jnp.zeros(example.terminated.shape[0], jnp.int32))


def add_decisions(decisions: Decisions, new: Decision, made: Bool[Array, "N"]) -> Decisions:
    """Write the new decisions of those environments that made one."""
    environments = jnp.arange(made.shape[0])
    at = jnp.where(made, decisions.count % decisions.length, decisions.length)  # out of range: not written

    def write(ring: Array, row: Array) -> Array:
        return ring.at[environments, at].set(row, mode="drop", wrap_negative_indices=False)

    return Decisions(jax.tree.map(write, decisions.rows, new), decisions.count + made)


def sample_decisions(
    key: PRNGKeyArray, decisions: Decisions, batch: int, now: Int[Array, ""], max_age: int, length: int = 1
) -> Decision:
    """Draw decisions, the younger the likelier: chances fall linearly with age, to zero at `max_age` steps. With each
    comes what stands behind it in its ring, `length` x batch in all: `follow_each_other` tells whether it follows it.

    There must be a decision younger than that.
    """
    written = jnp.arange(decisions.length) < decisions.count[:, None]
    youth = jnp.clip(1 - (now - decisions.rows.made_at) / max_age, 0, 1)
    chances = jnp.cumsum(jnp.where(written, youth, 0))
    # 1 - uniform is never 0, so that nothing without a chance is drawn.
    draws = (1 - jax.random.uniform(key, (batch,))) * chances[-1]
    environments, first = jnp.divmod(jnp.searchsorted(chances, draws), decisions.length)
    index = (first + jnp.arange(length)[:, None]) % decisions.length
    return pick(decisions.rows, environments, index)


def follow_each_other(chain: Decision) -> Bool[Array, "n B"]:
    """Which decisions of a chain belong to the first one's episode, without a gap.

    One follows another if it was made later, and where that one led to: an episode that was cut off lacks its last
    decision.
    """

    def equal(later: Array, earlier: Array) -> Bool[Array, "k B"]:
        same = later[1:] == earlier[:-1]
        return jnp.all(same, axis=range(2, same.ndim))

    leaves = jax.tree.leaves(jax.tree.map(equal, chain.state, chain.next_state))
    later = chain.made_at[1:] > chain.made_at[:-1]  # not so at the end of the ring, nor where it is still empty
    linked = reduce(jnp.logical_and, leaves, later & ~chain.terminated[:-1])
    return jnp.cumprod(jnp.concatenate([jnp.ones_like(chain.terminated[:1]), linked]), axis=0).astype(bool)
