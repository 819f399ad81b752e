"""Several seeds in one program: each is what it is alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL, Doors

from alma.training.together import Together
from alma.training.trainer import Trainer

SEEDS = (3, 7)
TRAINER = Trainer(Doors(), SMALL)
ITERATIONS = 25  # warm-up, and 6 updates
TOGETHER = Together(TRAINER, len(SEEDS))


@pytest.fixture(scope="module")
def trained():
    """Two runs after a few updates, with the metrics of these."""
    return TOGETHER.compile(ITERATIONS)(TOGETHER.begin(SEEDS))


@pytest.mark.parametrize("run", range(len(SEEDS)))
def test_a_run_is_what_it_is_alone(trained, run):
    """Up to rounding: products of matrices of several runs are computed at once."""
    state, metrics = trained
    alone, numbers = TRAINER.chunk(TRAINER.init(jax.random.key(SEEDS[run])), ITERATIONS)
    assert int(alone.updates) == 6
    for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(TOGETHER.checkpoint(state, run)), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if jnp.issubdtype(a.dtype, jnp.floating):
            # Adam makes much of gradients that are next to nothing: a third of one of its steps may be rounding.
            np.testing.assert_allclose(a, b, rtol=1e-2, atol=SMALL.actors.learning_rate / 3)
        else:
            np.testing.assert_array_equal(a, b)
    assert TOGETHER.metrics(metrics, run) == pytest.approx(
        {name: float(value) for name, value in numbers.items()}, rel=1e-3
    )


def test_runs_differ_from_each_other(trained):
    state, _ = trained
    one, other = (TOGETHER.live_params(state, run) for run in range(2))
    assert not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_checkpoints_come_back_as_they_were(trained):
    state, _ = trained
    placed = TOGETHER.place([TOGETHER.checkpoint(state, run) for run in range(2)])
    for a, b in zip(jax.tree.leaves(state.actors), jax.tree.leaves(placed.actors), strict=True):
        np.testing.assert_array_equal(a, b)
