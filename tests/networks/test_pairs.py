"""The allocator over pairs: probabilities, symmetries, and absent agents."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from views import random_view, rename_subtasks, select_entities, without

from alma import NOBODY
from alma.networks.pairs import PairCritic, PairProposal, log_probability, propose

VIEW = random_view()
PREVIOUS = jnp.asarray([0, 2, NOBODY])
EVERY = jnp.asarray(list(itertools.product(range(3), repeat=3)))


@pytest.fixture(scope="module")
def proposal():
    network = PairProposal(8, 6)
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    return lambda view=VIEW, previous=PREVIOUS: network.apply(params, view, previous)


@pytest.fixture(scope="module")
def critic():
    network = PairCritic(8)
    params = network.init(jax.random.key(1), VIEW, PREVIOUS, EVERY)
    return lambda view=VIEW, previous=PREVIOUS, every=EVERY: np.asarray(network.apply(params, view, previous, every))


def probabilities(codes, allocations):
    return np.exp(jax.vmap(lambda b: log_probability(codes, b)[0])(allocations))


def test_probabilities_sum_to_one(proposal):
    assert probabilities(proposal(), EVERY).sum() == pytest.approx(1, abs=1e-5)


def test_probabilities_sum_to_one_over_what_is_possible(proposal):
    gone = without(replace(VIEW, active=jnp.asarray([True, False, True])), 1)
    possible = jnp.asarray([(a, NOBODY, b) for a in (0, 2) for b in (0, 2)])
    assert probabilities(proposal(gone), possible).sum() == pytest.approx(1, abs=1e-5)


def test_draws_follow_the_probabilities(proposal):
    codes = proposal()
    draws = jax.jit(jax.vmap(lambda key: propose(key, codes)))(jax.random.split(jax.random.key(3), 30_000))
    shares = np.bincount(np.asarray(draws) @ [9, 3, 1], minlength=27) / 30_000
    expected = probabilities(codes, EVERY)
    assert (np.abs(shares - expected) < 4 * np.sqrt(expected * (1 - expected) / 30_000) + 1e-4).all()


def test_later_agents_know_what_earlier_ones_chose(proposal):
    """Given the first choice, the others' probabilities change."""
    codes = proposal()
    table = probabilities(codes, EVERY).reshape(3, 3, 3)
    conditional = table.sum(axis=2) / table.sum(axis=(1, 2))[:, None]
    assert not np.allclose(conditional[0], conditional[1], atol=1e-4)


def test_absent_agents_and_finished_subtasks_are_never_chosen(proposal):
    gone = without(replace(VIEW, active=jnp.asarray([True, False, True])), 1)
    codes = proposal(gone)
    draws = np.asarray(jax.vmap(lambda key: propose(key, codes))(jax.random.split(jax.random.key(0), 500)))
    assert (draws[:, 1] == NOBODY).all()
    assert set(draws[:, [0, 2]].ravel()) == {0, 2}


def test_entropy_by_hand(proposal):
    codes = proposal()
    flat = codes._replace(score=jnp.zeros_like(codes.score))
    assert float(log_probability(flat, EVERY[0])[1]) == pytest.approx(np.log(3), abs=1e-5)


def test_the_critic_does_not_care_for_the_names_of_agents_and_subtasks(critic):
    agents, subtasks = np.array([1, 2, 0]), np.array([2, 0, 1])
    renamed = rename_subtasks(select_entities(VIEW, agents.tolist(), [3, 4, 5, 6]), subtasks)
    new_name = np.argsort(subtasks)
    previous = np.array([NOBODY if b < 0 else new_name[b] for b in PREVIOUS.tolist()])[agents]
    every = new_name[np.asarray(EVERY)][:, agents]
    np.testing.assert_allclose(critic(renamed, jnp.asarray(previous), jnp.asarray(every)), critic(), atol=1e-5)


def test_absent_agents_change_no_value(critic):
    gone = without(VIEW, 2)
    allocations = EVERY.at[:, 2].set(NOBODY)
    fewer = select_entities(VIEW, [0, 1], [3, 4, 5, 6])
    expected = critic(fewer, PREVIOUS[:2], EVERY[:, :2])
    np.testing.assert_allclose(critic(gone, PREVIOUS, allocations), expected, atol=1e-5)


def test_finished_subtasks_are_worth_nothing(critic):
    """Everybody in a finished subtask: only the unattended ones count, whoever the agents are."""
    done = replace(VIEW, active=jnp.asarray([True, False, True]))
    everybody, nobody = jnp.asarray([[1, 1, 1]]), jnp.full((1, 3), NOBODY)
    np.testing.assert_allclose(critic(done, every=everybody), critic(done, every=nobody), atol=1e-6)
