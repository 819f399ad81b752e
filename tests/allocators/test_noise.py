"""Exploration by noise on the logits of the proposal network."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import AGENTS, FEATURES, random_view

from alma import NOBODY
from alma.allocators.allocator import AllocationExploration
from alma.allocators.aql import CandidateCounts
from alma.allocators.networks import PairNetworks, PointerNetworks
from alma.allocators.noise import NoisyEncoding, NoisyProposals
from alma.allocators.proposal import draw_proposals
from alma.nn.popart import Plain
from alma.play.situation import Situation

COUNT = 200
SEEN = tuple(range(FEATURES))
PAIRS = PairNetworks(Plain(), 8, 8, things=2, features=SEEN)
POINTER = PointerNetworks(Plain(), 8, 2, features=SEEN, use_relations=True)
VIEW = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (COUNT, *leaf.shape)), random_view())
NOWHERE = jnp.full((COUNT, AGENTS), NOBODY)
PARAMS = PAIRS.init(jax.random.key(0), VIEW, NOWHERE)


def first_proposals(deviation, amount, view=VIEW):
    """What is taken if it is always the first proposal."""
    exploration = AllocationExploration(jnp.float32(1), jnp.float32(amount))
    situations, due = Situation(None, view, NOWHERE, NOWHERE), jnp.ones(COUNT, bool)
    explorer, counts = NoisyProposals(deviation), CandidateCounts(2)
    return np.asarray(explorer.allocate(PAIRS, PARAMS, jax.random.key(1), situations, due, counts, exploration))


@pytest.mark.parametrize("networks", [PAIRS, POINTER], ids=["pairs", "pointer"])
def test_without_noise_proposals_are_the_usual_ones(networks):
    params = networks.init(jax.random.key(0), VIEW, NOWHERE)
    encoded = networks.encode(params, VIEW, NOWHERE)
    encoding = networks.encode_for_proposal(params, encoded)
    usual = networks.proposals(params, jax.random.key(2), encoded, 3)
    draw = partial(draw_proposals, jax.random.key(2), count=3)
    assert np.array_equal(draw(NoisyEncoding(encoding, jnp.zeros(encoding.allowed.shape))), usual)
    loud = draw(NoisyEncoding(encoding, 1000 * jax.random.normal(jax.random.key(3), encoding.allowed.shape)))
    assert not np.array_equal(loud, usual)
    same = (loud == loud[:, :1]).mean()
    assert same > 0.95, "all candidates follow the same noise, if it is all that counts, but for close calls"


def test_noise_differs_between_decisions_and_falls_with_its_schedule():
    loud, silent = first_proposals(1000.0, 1.0), first_proposals(1000.0, 0.0)
    shares = [np.bincount(taken[:, 0], minlength=3) / COUNT for taken in (loud, silent)]
    assert np.abs(shares[0] - 1 / 3).max() < 4 * np.sqrt(2 / 9 / COUNT), "the noise alone decides, alike for all"
    assert not np.array_equal(loud, silent)
    assert np.array_equal(silent, first_proposals(1.0, 0.0))


def test_noise_sends_nobody_where_there_is_nothing_to_do():
    view = replace(VIEW, active=VIEW.active.at[:, 1].set(False), present=VIEW.present.at[:, 0].set(False))
    taken = first_proposals(1000.0, 1.0, view)
    assert (taken[:, 0] == NOBODY).all()
    assert set(np.unique(taken[:, 1:])) == {0, 2}


def test_allocations_that_are_not_due_stay():
    exploration = AllocationExploration(jnp.float32(0), jnp.float32(1))
    now = jnp.ones((COUNT, AGENTS), int)
    due = jnp.arange(COUNT) % 2 == 0
    taken = NoisyProposals(1000.0).allocate(
        PAIRS, PARAMS, jax.random.key(1), Situation(None, VIEW, now, now), due, CandidateCounts(2, 1), exploration
    )
    assert (taken[1::2] == 1).all()
    assert (taken[::2] != 1).any()
