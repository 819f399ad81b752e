"""Two replay buffers of task states (not features): environment steps for the actors, decisions for the allocator."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Tree = TypeVar("Tree")


def pick(tree: Tree, *index: Int[Array, "*#n"]) -> Tree:
    """Index the leading axes of every leaf. Indices must be in bounds and not negative: supporting negative ones would
    more than double what has to be compiled."""
    return jax.tree.map(lambda leaf: leaf.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False), tree)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Step:
    """One environment step, as the actors' replay buffer stores it."""

    state: Any
    """The task state before the step."""
    allocation: Int[Array, "*b A"]
    last_action: Int[Array, "*b A"]
    """The action of the step before, -1 at the first."""
    action: Int[Array, "*b A"]
    rewards: Float[Array, "*b K"]
    """The reward of each value that the actors learn: one per subtask, or the global reward."""
    terminated: Bool[Array, "*b"]
    truncated: Bool[Array, "*b"]
    since_decision: Int[Array, "*b"]
    """Steps since the allocation was made."""
    end: Int[Array, "*b"]
    """The number of the episode that ended with this step, counted over all environments; meaningless for other steps.
    `add_step` sets it."""


STEPS_PER_FINAL_STATE = 8
"""The buffer has room for the final state of one episode per so many steps."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Steps:
    """The actors' replay buffer: a ring of the last T steps of N environments, and one of final states of episodes."""

    rows: Step
    """T x N steps, time first."""
    count: Int[Array, ""]
    """Time steps written so far, each a row of N."""
    ends: Any
    """Final states of the latest episodes, which are not the `state` of any step: a ring of K rows."""
    ended: Int[Array, "*devices"]
    """Episodes ended so far. In the state of a run over several devices, those of each device's environments."""

    @property
    def length(self) -> int:
        """T: the number of time steps that fit."""
        return self.rows.terminated.shape[0]

    @property
    def final_states_kept(self) -> int:
        """K: the number of final states that fit."""
        return jax.tree.leaves(self.ends)[0].shape[0]


def final_states_for(length: int, environments: int) -> int:
    """K: the number of final states kept for `length` time steps of so many environments."""
    return max(environments, length * environments // STEPS_PER_FINAL_STATE)


def empty_steps(example: Step, length: int) -> Steps:
    """An empty buffer of `length` time steps, with shapes and dtypes from an example row of N steps."""
    kept = final_states_for(length, example.terminated.shape[0])
    return Steps(
        rows=jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), example),
        count=jnp.int32(0),
        ends=jax.tree.map(lambda leaf: jnp.zeros((kept, *leaf.shape[1:]), leaf.dtype), example.state),
        ended=jnp.int32(0),
    )


def add_step(steps: Steps, step: Step, reached: Any) -> Steps:
    """Overwrite the oldest time step with a new one; where it ended an episode, store the state it reached as well."""
    done = step.terminated | step.truncated
    episode = steps.ended + jnp.cumsum(done) - done
    row_at = steps.count % steps.length
    # Where no episode ended, the index is out of range, and nothing is written.
    final_at = jnp.where(done, episode % steps.final_states_kept, steps.final_states_kept)
    return Steps(
        rows=jax.tree.map(
            lambda ring, row: ring.at[row_at].set(row, wrap_negative_indices=False),
            steps.rows,
            replace(step, end=episode),
        ),
        count=steps.count + 1,
        ends=jax.tree.map(
            lambda ring, row: ring.at[final_at].set(row, mode="drop", wrap_negative_indices=False), steps.ends, reached
        ),
        ended=steps.ended + jnp.sum(done),
    )


class Windows(NamedTuple):
    """B windows of T consecutive steps of one environment each, T x B rows. They may reach into the next episode."""

    steps: Step
    decision_states: Any
    """The states in which the allocations of the steps were made."""
    final_states: Any
    """The final states of the episodes that ended with these steps; arbitrary states for other steps."""
    has_final_state: Bool[Array, "T B"]
    """Where an episode ended with this step and its final state is still in the buffer."""


def sample_windows(key: PRNGKeyArray, steps: Steps, batch: int, length: int, max_since_decision: int) -> Windows:
    """Sample windows of `length` steps, uniformly.

    `max_since_decision` is the most steps ago that the allocation of a step can have been made. The buffer must hold at
    least `length + max_since_decision` time steps.
    """
    time_key, env_key = jax.random.split(key)
    filled = jnp.minimum(steps.count, steps.length)
    newest_start = steps.count - length
    starts = newest_start - jax.random.randint(time_key, (batch,), 0, filled - length - max_since_decision + 1)
    environments = jax.random.randint(env_key, (batch,), 0, steps.rows.terminated.shape[1])
    times = starts[None, :] + jnp.arange(length)[:, None]
    rows = pick(steps.rows, times % steps.length, environments)
    decided_at = (times - rows.since_decision) % steps.length
    return Windows(
        steps=rows,
        decision_states=pick(steps.rows.state, decided_at, environments),
        final_states=pick(steps.ends, rows.end % steps.final_states_kept),
        has_final_state=(rows.terminated | rows.truncated) & (rows.end >= steps.ended - steps.final_states_kept),
    )


def unfold(windows: Tree, length: int) -> Tree:
    """All sub-windows of `length` steps of longer windows, stacked along the batch axis: `length` x (starts * B)."""

    def slide(leaf: Array) -> Array:
        starts = leaf.shape[0] - length + 1
        rows = jnp.stack([leaf[first : first + starts] for first in range(length)])
        return rows.reshape(length, starts * leaf.shape[1], *leaf.shape[2:])

    return jax.tree.map(slide, windows)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Decision:
    """A transition between two decision points of one environment, as the allocator's replay buffer stores it."""

    state: Any
    previous: Int[Array, "*b A"]
    """The allocation that this decision replaced."""
    allocation: Int[Array, "*b A"]
    reward: Float[Array, "*b"]
    """The sum of global rewards between the two decision points."""
    next_state: Any
    terminated: Bool[Array, "*b"]
    made_at: Int[Array, "*b"]
    """The run's environment steps when the decision was made."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Decisions:
    """The allocator's replay buffer: a ring of decisions per environment, since they are made at different times."""

    rows: Decision
    """N x K decisions."""
    count: Int[Array, "N"]
    """Decisions written so far."""

    @property
    def length(self) -> int:
        """K: the number of decisions that fit, per environment."""
        return self.rows.terminated.shape[1]


def empty_decisions(example: Decision, length: int) -> Decisions:
    """An empty buffer of `length` decisions per environment, with shapes and dtypes from an example row of N."""

    def ring(leaf: Array) -> Array:
        return jnp.zeros((leaf.shape[0], length, *leaf.shape[1:]), leaf.dtype)

    return Decisions(jax.tree.map(ring, example), jnp.zeros(example.terminated.shape[0], jnp.int32))


def add_decisions(decisions: Decisions, new: Decision, made: Bool[Array, "N"]) -> Decisions:
    """Overwrite the oldest decision with the new one, in the environments where `made` is True."""
    environments = jnp.arange(made.shape[0])
    at = jnp.where(made, decisions.count % decisions.length, decisions.length)  # out of range: nothing is written

    def write(ring: Array, row: Array) -> Array:
        return ring.at[environments, at].set(row, mode="drop", wrap_negative_indices=False)

    return Decisions(jax.tree.map(write, decisions.rows, new), decisions.count + made)


def sample_decisions(
    key: PRNGKeyArray, decisions: Decisions, batch: int, now: Int[Array, ""], max_age: int, length: int = 1
) -> Decision:
    """Sample decisions with probabilities that fall linearly with age, to zero at `max_age` environment steps.

    Each comes with the rows after it in its ring, `length` x batch in all; `are_consecutive` tells which of them
    are its successors. The buffer must hold at least one decision younger than `max_age`.
    """
    written = jnp.arange(decisions.length) < decisions.count[:, None]
    weights = jnp.clip(1 - (now - decisions.rows.made_at) / max_age, 0, 1)
    cumulative = jnp.cumsum(jnp.where(written, weights, 0))
    # 1 - uniform is never 0, so that no decision of probability 0 is drawn.
    draws = (1 - jax.random.uniform(key, (batch,))) * cumulative[-1]
    environments, first = jnp.divmod(jnp.searchsorted(cumulative, draws), decisions.length)
    index = (first + jnp.arange(length)[:, None]) % decisions.length
    return pick(decisions.rows, environments, index)


def are_consecutive(chain: Decision) -> Bool[Array, "n B"]:
    """Mask of the decisions of a chain that are consecutive decisions of the first one's episode.

    A decision follows another if it was made later, in the state that the other led to. Being next to each other in
    the ring is not enough: the last decision of a truncated episode is not stored.
    """

    def equal(later: Array, earlier: Array) -> Bool[Array, "k B"]:
        same = later[1:] == earlier[:-1]
        return jnp.all(same, axis=range(2, same.ndim))

    leaves = jax.tree.leaves(jax.tree.map(equal, chain.state, chain.next_state))
    later = chain.made_at[1:] > chain.made_at[:-1]  # False where the ring wraps around, and where it is still empty
    linked = reduce(jnp.logical_and, leaves, later & ~chain.terminated[:-1])
    return jnp.cumprod(jnp.concatenate([jnp.ones_like(chain.terminated[:1]), linked]), axis=0).astype(bool)
