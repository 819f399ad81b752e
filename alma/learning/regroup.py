"""Moving the actors' replay to another number of devices.

The environments of a device are neighbours, so most arrays only have to be split at other places. But each device
counts the ended episodes of its own environments, and numbers by that count index its own ring of final states.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from alma.learning.replay import Steps, final_states_for


def regroup(steps: Steps, before: int, after: int) -> Steps:
    """Replay in the layout of `after` devices, given that of `before` devices: `ended` has an entry for each.

    Episodes are numbered anew from 0, the oldest first. Which final states are still there does not change, unless the
    ring of a device has no room for all: then the oldest are dropped. What has no meaning becomes 0, so that runs with
    the same replay have the same checkpoints, however often they were resumed.
    """
    rows = jax.device_get(steps.rows)
    done = rows.terminated | rows.truncated
    length, environments = done.shape
    ring = steps.final_states_kept // before
    device = np.arange(environments) // (environments // before)
    has_final_state = done & (rows.end >= np.asarray(steps.ended)[device] - ring)
    final_state_at = device * ring + rows.end % ring
    oldest_first = (int(steps.count) + np.arange(length)) % length

    share = environments // after
    ring = final_states_for(length, share)
    end = np.where(done, -ring - 1, 0)  # too long ago, unless set below
    source, is_used = np.zeros(after * ring, int), np.zeros(after * ring, bool)
    ended: list[int] = []
    for first in range(0, environments, share):
        age, column = np.nonzero(has_final_state[oldest_first, first : first + share])
        time, column = oldest_first[age[-ring:]], first + column[-ring:]
        number = np.arange(len(time))
        end[time, column] = number
        at = len(ended) * ring + number
        source[at], is_used[at] = final_state_at[time, column], True
        ended.append(len(time))
    return replace(
        steps,
        rows=replace(steps.rows, end=jnp.asarray(end)),
        ends=jax.tree.map(lambda leaf: leaf[source] * _beside(is_used, leaf), jax.device_get(steps.ends)),
        ended=jnp.asarray(ended, jnp.int32),
    )


def _beside(rows: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    """One number for each row of a leaf, in its dtype, with as many axes."""
    return rows.reshape(-1, *[1] * (leaf.ndim - 1)).astype(leaf.dtype)
