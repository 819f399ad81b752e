"""Masked, labelled and flat actors: what each sees, and that they are one network."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import (
    ACTIONS,
    FEATURES,
    RELATIONS,
    SPEC,
    SUBTASKS,
    random_view,
    rename_subtasks,
    select_entities,
    without,
)

from alma import NOBODY, Outcome
from alma.actors.networks import greedy, make_networks
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.scope import Flat, Labelled, Masked

ALLOCATION = jnp.asarray([0, 1, 0])
LAST = jnp.asarray([1, -1, 3])
VIEW = random_view()
KEY = jax.random.key(0)
OUTCOME = Outcome(
    reward=jnp.float32(5),
    subtask_rewards=jnp.asarray([1.0, 2.0, 2.0]),
    terminated=jnp.asarray(False),
    truncated=jnp.asarray(False),
    finished=jnp.zeros(3, bool),
    success=jnp.asarray(False),
    metrics={},
)


def options(trunk):
    return ActorOptions(networks=ActorNetworkOptions(trunk=trunk, width=8, heads=2, hidden=8, mixer="qmix"))


@pytest.fixture(params=["pooling", "attention"])
def networks_of(request):
    return lambda scope: make_networks(SPEC, options(request.param), scope)


def values(networks, params, view=VIEW, allocation=ALLOCATION, key=KEY):
    """Utilities, and the mixed value of the greedy actions."""
    sight = networks.look(key, view, allocation)
    utilities = networks.utilities(params, sight, LAST)
    return np.asarray(utilities), np.asarray(networks.mix(params, utilities.max(axis=-1), sight, LAST))


def test_flat_is_one_subtask_that_holds_everything(networks_of):
    flat, masked = networks_of(Flat(SPEC)), networks_of(Masked(replace(SPEC, subtasks=1)))
    whole = replace(VIEW, subtask=jnp.where(jnp.arange(7) < 3, NOBODY, 0), active=jnp.ones(1, bool))
    together = jnp.zeros(3, int)
    params = flat.init(KEY, VIEW, ALLOCATION)
    for one, other in zip(values(flat, params), values(masked, params, whole, together), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    # The same where an agent has died that is still allocated.
    for one, other in zip(
        values(flat, params, without(VIEW, 1)), values(masked, params, without(whole, 1), together), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert flat.scope.rewards(OUTCOME).tolist() == [5]
    assert flat.scope.active(VIEW).tolist() == [True]


def test_to_flat_actors_an_allocation_means_nothing(networks_of):
    flat = networks_of(Flat(SPEC))
    params = flat.init(KEY, VIEW, ALLOCATION)
    nobody = jnp.full(3, NOBODY)
    for one, other in zip(values(flat, params), values(flat, params, allocation=nobody), strict=True):
        np.testing.assert_array_equal(one, other)
    renamed = rename_subtasks(VIEW, [2, 0, 1])
    np.testing.assert_array_equal(values(flat, params, renamed)[0], values(flat, params)[0])


def test_labelled_actors_see_everything_and_know_their_subtask(networks_of):
    labelled = networks_of(Labelled(SPEC))
    params = labelled.init(KEY, VIEW, ALLOCATION)
    before = values(labelled, params)[0]
    elsewhere = replace(VIEW, entities=VIEW.entities.at[4].add(3.0))
    assert not np.allclose(values(labelled, params, elsewhere)[0][0], before[0])
    assert not np.allclose(values(labelled, params, allocation=jnp.asarray([1, 1, 0]))[0][0], before[0])


def test_labels_are_permuted_so_that_numbers_mean_nothing(networks_of):
    """Renaming subtasks is the same as drawing another permutation of their labels."""
    labelled = networks_of(Labelled(SPEC))
    params = labelled.init(KEY, VIEW, ALLOCATION)
    order = [2, 0, 1]
    renamed, moved = rename_subtasks(VIEW, order), jnp.argsort(jnp.asarray(order))[ALLOCATION]

    @jax.jit
    def utilities(view, allocation, key):
        return labelled.utilities(params, labelled.look(key, view, allocation), LAST)

    def outcomes(view, allocation):
        found = (np.asarray(utilities(view, allocation, jax.random.key(i))) for i in range(40))
        return {tuple(row.round(4).ravel().tolist()) for row in found}

    plain = outcomes(VIEW, ALLOCATION)
    assert len(plain) == 6, "one for every permutation of three subtasks"
    np.testing.assert_allclose(sorted(outcomes(renamed, moved)), sorted(plain), atol=2e-4)


def test_masked_actors_see_their_own_subtask():
    sight = Masked(SPEC).look(KEY, VIEW, ALLOCATION)
    # Agents 0 and 2 and the things 3 and 6 make up subtask 0.
    assert sight.utility_mask[0].tolist() == [True, False, True, True, False, False, True]
    assert sight.members.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert Masked(SPEC).rewards(OUTCOME).tolist() == [1, 2, 2]


@pytest.mark.parametrize("scope", [Labelled, Flat])
def test_who_sees_everything_does_not_see_the_absent(scope):
    mask = scope(SPEC).look(KEY, without(VIEW, 1), jnp.asarray([0, NOBODY, 0])).utility_mask
    assert not mask[1].any()
    assert not mask[:, 1].any()
    assert mask[0].sum() == mask[2].sum() == 6


@pytest.mark.parametrize(("scope", "expected"), [(Masked, [2, 3]), (Labelled, [2, 3]), (Flat, [1, 2, 3])])
def test_actions_aimed_elsewhere_are_ruled_out_where_subtasks_count(scope, expected):
    # Agent 0 works on subtask 0; thing 4 is of subtask 1, thing 3 of subtask 0.
    view = replace(
        VIEW,
        available=jnp.ones((3, ACTIONS), bool).at[:, 0].set(False),
        target=jnp.full((3, ACTIONS), -1).at[:, 1].set(4).at[:, 2].set(3),
    )
    available = scope(SPEC).available(view, ALLOCATION)
    assert np.flatnonzero(available[0]).tolist() == expected
    best = greedy(jnp.broadcast_to(jnp.asarray([9.0, 5.0, 3.0, 1.0]), (3, 4)), available)
    assert int(best[0]) == expected[0]


def test_labels_are_features():
    sight = Labelled(SPEC).look(KEY, VIEW, ALLOCATION)
    assert sight.view.entities.shape == (7, FEATURES + SUBTASKS)
    assert sight.view.relations.shape[-1] == RELATIONS
    labels = np.asarray(sight.view.entities[:, FEATURES:])
    assert (labels.sum(axis=1) == 1).all()
    same = labels @ labels.T
    subtask = np.array([0, 1, 0, 0, 1, 2, 0])
    np.testing.assert_array_equal(same, subtask[:, None] == subtask)


@pytest.mark.parametrize("scope", [Masked, Labelled, Flat])
def test_order_does_not_matter(networks_of, scope):
    networks = networks_of(scope(SPEC))
    params = networks.init(KEY, VIEW, ALLOCATION)
    utilities, mixed = values(networks, params)
    agents, things = np.array([2, 0, 1]), [6, 4, 3, 5]
    permuted = select_entities(VIEW, agents.tolist(), things)
    sight = networks.look(KEY, permuted, ALLOCATION[agents])
    after = networks.utilities(params, sight, LAST[agents])
    np.testing.assert_allclose(after, utilities[agents], atol=1e-5)
    np.testing.assert_allclose(networks.mix(params, after.max(axis=-1), sight, LAST[agents]), mixed, atol=1e-5)


def test_what_is_not_visible_is_not_seen_by_agents(networks_of):
    flat = networks_of(Flat(SPEC))
    params = flat.init(KEY, VIEW, ALLOCATION)
    hidden = replace(VIEW, visible=VIEW.visible.at[0, 4].set(False))
    changed = replace(hidden, entities=hidden.entities.at[4].add(3.0))
    np.testing.assert_allclose(values(flat, params, changed)[0][0], values(flat, params, hidden)[0][0], atol=1e-6)
    assert not np.allclose(values(flat, params, changed)[1], values(flat, params, hidden)[1]), "but the mixer sees it"


def test_smaller_and_larger_situations_can_be_looked_at(networks_of):
    labelled = networks_of(Labelled(SPEC))
    params = labelled.init(KEY, VIEW, ALLOCATION)
    small = random_view(agents=2, things=2, subtasks=2)
    sight = labelled.look(KEY, small, jnp.asarray([0, 1]))
    assert labelled.utilities(params, sight, jnp.asarray([0, 1])).shape == (2, ACTIONS)
    large = random_view(agents=5, things=5, subtasks=5)
    allocation = jnp.asarray([0, 1, 2, 3, NOBODY])
    sight = labelled.look(KEY, large, allocation)
    assert labelled.utilities(params, sight, allocation).shape == (5, ACTIONS)
    labels = np.asarray(sight.view.entities[:, FEATURES:])
    assert labels.sum(axis=1).tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    np.testing.assert_array_equal(labels[0], labels[3], err_msg="three labels for five subtasks: 0 and 3 share one")
    assert len({row.tobytes() for row in labels[:3]}) == 3
