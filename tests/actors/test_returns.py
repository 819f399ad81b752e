"""Returns over several steps, worked out by hand."""

import jax.numpy as jnp
import pytest

from alma.actors.returns import n_step_returns
from alma.learning.replay import Step

GAMMA = 0.5


def window(rewards, allocations, terminated=(), truncated=()):
    """One environment, one agent, one subtask; the last step only lends its state."""
    length = len(rewards)

    def flags(steps):
        return jnp.asarray([[t in steps] for t in range(length)])

    return Step(
        state=jnp.arange(length)[:, None],
        allocation=jnp.asarray(allocations).reshape(length, 1, 1),
        last_action=jnp.zeros((length, 1, 1), int),
        action=jnp.zeros((length, 1, 1), int),
        rewards=jnp.asarray(rewards, jnp.float32).reshape(length, 1, 1),
        terminated=flags(terminated),
        truncated=flags(truncated),
        since_decision=jnp.zeros((length, 1), int),
        end=jnp.zeros((length, 1), int),
    )


@pytest.mark.parametrize(
    ("steps", "lost", "reward", "used", "ended"),
    [
        (window([1, 2, 4, 8], [0, 0, 0, 0]), (), 1 + 2 / 2 + 4 / 4, 3, False),
        (window([1, 2, 4, 8], [0, 0, 1, 1]), (), 1 + 2 / 2, 2, False),  # allocated elsewhere at step 2
        (window([1, 2, 4, 8], [0, 1, 0, 0]), (), 1, 1, False),  # coming back does not help
        (window([1, 2, 4, 8], [0, 0, 0, 0], terminated=[1]), (), 1 + 2 / 2, 2, True),
        (window([1, 2, 4, 8], [0, 0, 0, 0], terminated=[1]), (1,), 1, 1, False),
        (window([1, 2, 4, 8], [0, 0, 0, 0], truncated=[1]), (), 1 + 2 / 2, 2, True),
        (window([1, 2, 4, 8], [0, 0, 0, 0], truncated=[1]), (1,), 1, 1, False),  # bootstrap before the lost state
        (window([1, 2, 4, 8], [0, 0, 0, 0], truncated=[0]), (0,), 0, 0, False),  # nothing to learn
        (window([1, 2, 4, 8], [0, 0, 0, 0], terminated=[3]), (), 1 + 2 / 2 + 4 / 4, 3, False),  # beyond the window
        (window([3, 9], [0, 0]), (), 3, 1, False),
    ],
)
def test_returns(steps, lost, reward, used, ended):
    flags = jnp.asarray([[t in lost] for t in range(len(steps.rewards))])
    returns = n_step_returns(steps, flags, GAMMA)
    assert float(returns.rewards[0, 0]) == reward
    assert int(returns.steps[0]) == used
    assert bool(returns.ended[0]) is ended
    assert bool(returns.terminated[0]) is (ended and bool(steps.terminated.any()))
