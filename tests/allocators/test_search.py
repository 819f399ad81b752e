"""A search finds what is best, by a critic that is known."""

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import random_view

from alma import NOBODY
from alma.allocators.networks import AllocatorNetworks
from alma.allocators.proposal import allowed_subtasks
from alma.allocators.search import allocations_by_number, count_allocations, search_all, search_nearby
from alma.nn.popart import Plain

AGENTS, SUBTASKS = 4, 5
NOWHERE = jnp.full(AGENTS, NOBODY)


class AnyOf(NamedTuple):
    """A proposal that likes everything that is allowed alike."""

    allowed: jax.Array
    memory_grows = False

    def start(self):
        return None

    def logits(self, agent, memory):
        return jnp.zeros(self.allowed.shape[-1])

    def remember(self, agent, memory, taken):
        return None


@dataclass(frozen=True)
class Table(AllocatorNetworks):
    """A critic with a value for every (agent, subtask) pair and every pair of agents that are together."""

    def init(self, key, view, previous):
        keys = jax.random.split(key, 2)
        return {
            "alone": jax.random.normal(keys[0], (AGENTS, SUBTASKS)),
            "together": jax.random.normal(keys[1], (AGENTS, AGENTS)),
            "head": {},
        }

    def encode_for_proposal(self, params, encoded):
        return AnyOf(allowed_subtasks(encoded, AGENTS))

    def encode(self, params, view, previous):
        return view

    def raw_values(self, params, encoded, allocations):
        alone = jax.nn.one_hot(allocations, SUBTASKS) * params["alone"]
        together = (allocations[..., :, None] == allocations[..., None, :]) & (allocations[..., None] >= 0)
        return jnp.sum(alone, axis=(-1, -2)) + jnp.sum(together * params["together"], axis=(-1, -2))


TABLE = Table(Plain())


def situation(seed, absent=(), inactive=()):
    view = random_view(seed, agents=AGENTS, subtasks=SUBTASKS)
    params = TABLE.init(jax.random.key(seed), view, NOWHERE)
    present = view.present.at[jnp.asarray(absent, int)].set(False)
    return replace(view, present=present, active=view.active.at[jnp.asarray(inactive, int)].set(False)), params


def best_by_hand(view, params):
    allowed = [
        np.flatnonzero(view.active).tolist() if view.present[agent] and view.active.any() else [NOBODY]
        for agent in range(AGENTS)
    ]
    every = jnp.asarray(list(itertools.product(*allowed)))
    values = TABLE.raw_values(params, None, every)
    return every, every[jnp.argmax(values)].tolist()


CASES = [(0, (), ()), (1, (2,), ()), (2, (0, 3), (1,)), (3, (), (0, 2, 3)), (4, (1,), (4,))]


@pytest.mark.parametrize(("seed", "absent", "inactive"), CASES)
def test_all_allocations_are_counted_once(seed, absent, inactive):
    view, params = situation(seed, absent, inactive)
    every, _ = best_by_hand(view, params)
    counted = allocations_by_number(jnp.arange(len(every)), view, AGENTS)
    assert sorted(counted.tolist()) == sorted(every.tolist())


@pytest.mark.parametrize(("seed", "absent", "inactive"), CASES)
def test_the_best_of_all_is_found(seed, absent, inactive):
    view, params = situation(seed, absent, inactive)
    assert search_all(TABLE, params, view, NOWHERE, 10_000).tolist() == best_by_hand(view, params)[1]


def test_nothing_active_means_nobody():
    view, params = situation(0, inactive=range(SUBTASKS))
    assert search_all(TABLE, params, view, NOWHERE, 10_000).tolist() == NOWHERE.tolist()
    assert search_nearby(TABLE, params, jax.random.key(0), view, NOWHERE, 2).tolist() == NOWHERE.tolist()


@pytest.mark.parametrize(("seed", "absent", "inactive"), CASES)
def test_a_search_nearby_ends_where_nobody_would_move(seed, absent, inactive):
    view, params = situation(seed, absent, inactive)
    found = search_nearby(TABLE, params, jax.random.key(0), view, NOWHERE, 3)
    value = TABLE.raw_values(params, None, found[None])[0]
    for agent in np.flatnonzero(view.present[:AGENTS]):
        assert bool(view.active[found[agent]])
        for subtask in np.flatnonzero(view.active):
            moved = found.at[agent].set(subtask)
            assert TABLE.raw_values(params, None, moved[None])[0] <= value + 1e-6
    assert (found[jnp.asarray(absent, int)] == NOBODY).all()


def test_without_company_a_search_nearby_is_exact():
    view, params = situation(5)
    params = {**params, "together": jnp.zeros((AGENTS, AGENTS))}
    found = search_nearby(TABLE, params, jax.random.key(0), view, NOWHERE, 1)
    assert found.tolist() == jnp.argmax(params["alone"], axis=1).tolist()


def test_too_many_to_try_them_all():
    view, params = situation(0)
    assert count_allocations(view, AGENTS) == 5**4
    assert search_all(TABLE, params, view, NOWHERE, 624).tolist() == NOWHERE.tolist()
    assert search_all(TABLE, params, view, NOWHERE, 625).tolist() == best_by_hand(view, params)[1]
