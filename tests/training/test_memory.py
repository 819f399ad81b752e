"""How much memory a run needs, from its options alone."""

import jax
import jax.numpy as jnp

from alma.task.registry import make
from alma.training.memory import bytes_needed, peak_bytes
from alma.training.options import with_overrides
from alma.training.presets import preset
from alma.training.trainer import Trainer

ROW = jnp.zeros(1_000, jnp.float32)
BYTES = 4_000


def peak(function, *arguments):
    return peak_bytes(jax.make_jaxpr(function)(*arguments).jaxpr)


def test_results_take_memory_until_they_are_used_for_the_last_time():
    assert peak(lambda row: jnp.sin(jnp.cos(jnp.exp(row))), ROW) == 2 * BYTES
    assert peak(lambda row: jnp.exp(row) + jnp.cos(jnp.exp(row)), ROW) == 3 * BYTES


def test_what_is_inside_of_loops_and_branches_counts_once():
    def loop(row):
        return jax.lax.fori_loop(0, 100, lambda _, each: jnp.sin(jnp.cos(each)), row)

    def branch(row):
        return jax.lax.cond(row[0] > 0, lambda each: jnp.outer(each, each)[0], jnp.sin, row)

    assert 3 * BYTES <= peak(loop, ROW) < 4 * BYTES
    assert 1_000 * BYTES < peak(branch, ROW) < 1_010 * BYTES


def test_replay_is_written_in_place():
    assert peak(lambda row: row.at[3].set(1.0), ROW) < BYTES


def needed(**changes):
    options = with_overrides(preset("tiny", "save-the-city"), changes)
    return bytes_needed(Trainer(make("save-the-city", agents=2), options))


def test_larger_options_need_more_without_being_compiled():
    usual = needed()
    assert usual < 20_000_000
    assert needed(**{"actors.batch": 10**8, "collection.buffer": 10**8}) > 10**5 * usual
    assert needed(**{"actors.networks.width": 10**6}) > 10**5 * usual
