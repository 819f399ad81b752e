"""Actors see their own subtask and nothing else."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import ACTIONS, random_view, select_entities, without

from alma import NOBODY
from alma.actors.utility import Aim, Utility
from alma.nn.attention import Attention, Pooling
from alma.nn.masks import same_subtask

ALLOCATION = jnp.asarray([0, 1, 0])
LAST = jnp.asarray([1, -1, 3])
# Agents 0 and 2 aim at things of their own subtask and at others.
VIEW = replace(random_view(), target=jnp.asarray([[-1, 3, 6, 4], [-1, -1, 4, 3], [6, -1, 5, 0]]))


KINDS = ("pooling", "pooling, not normalised", "pooling and aim", "attention", "attention without relations")


@pytest.fixture(scope="module", params=KINDS)
def network(request):
    trunks = {
        "pooling": Pooling(8, things=2),
        "pooling, not normalised": Pooling(8, things=2, normalise=False),
        "pooling and aim": Pooling(8, things=2),
        "attention": Attention(8, heads=2),
        "attention without relations": Attention(8, heads=2, use_relations=False),
    }
    utility = Utility(trunks[request.param], 8, ACTIONS, aim=8 if "aim" in request.param else 0)
    params = utility.init(jax.random.key(0), VIEW, same_subtask(VIEW, ALLOCATION)[None], LAST)
    return partial(utility.apply, params)


@pytest.fixture(scope="module")
def utility(network):
    def values(view, allocation=ALLOCATION, last=LAST, mask=True):
        attends = same_subtask(view, allocation) if mask else view.visible & view.present
        return np.asarray(network(view, attends[None], last)[0])

    return values


def test_masked_utilities_are_those_of_the_subtask_alone(utility):
    # Subtask 0 holds agents 0 and 2 and the things 3 and 6.
    alone = select_entities(VIEW, [0, 2], [3, 6])
    expected = utility(alone, jnp.asarray([0, 0]), LAST[jnp.asarray([0, 2])])
    np.testing.assert_allclose(utility(VIEW)[[0, 2]], expected, atol=1e-5)


def test_what_is_outside_the_subtask_does_not_matter(utility):
    outside = jnp.asarray([1, 4, 5])
    relations = VIEW.relations.at[:, outside].add(3.0).at[1].add(3.0)
    changed = replace(VIEW, entities=VIEW.entities.at[outside].add(3.0), relations=relations)
    np.testing.assert_allclose(utility(changed, last=LAST.at[1].set(2))[[0, 2]], utility(VIEW)[[0, 2]], atol=1e-6)
    assert not np.allclose(utility(changed, mask=False)[0], utility(VIEW, mask=False)[0])


@pytest.mark.parametrize(("normalise", "scale"), [(True, 1), (False, 2)])
def test_normalised_sums_have_one_scale(normalise, scale):
    """Layers begin without biases: what is twice as large becomes twice as large, unless it is normalised."""
    trunk, attends = Pooling(8, things=2, normalise=normalise), same_subtask(VIEW, ALLOCATION)[None]
    params = trunk.init(jax.random.key(0), VIEW.entities, VIEW.relations, attends)
    once = trunk.apply(params, VIEW.entities, VIEW.relations, attends)
    twice = trunk.apply(params, 2 * VIEW.entities, 2 * VIEW.relations, attends)
    np.testing.assert_allclose(twice, scale * once, rtol=1e-4)


def test_what_is_inside_matters(utility):
    changed = replace(VIEW, entities=VIEW.entities.at[3].add(3.0))
    assert not np.allclose(utility(changed)[0], utility(VIEW)[0])
    np.testing.assert_allclose(utility(changed)[1], utility(VIEW)[1], atol=1e-6)


def test_permuting_agents_permutes_utilities(utility):
    order = np.array([2, 0, 1])
    permuted = select_entities(VIEW, order.tolist(), [3, 4, 5, 6])
    np.testing.assert_allclose(utility(permuted, ALLOCATION[order], LAST[order]), utility(VIEW)[order], atol=1e-5)


def test_the_order_of_other_entities_does_not_matter(utility):
    permuted = select_entities(VIEW, [0, 1, 2], [6, 4, 3, 5])
    np.testing.assert_allclose(utility(permuted), utility(VIEW), atol=1e-5)


def test_absent_agents_have_no_utility_and_change_nothing(utility):
    gone = without(VIEW, 2)
    expected = utility(select_entities(VIEW, [0, 1], [3, 4, 5, 6]), ALLOCATION[:2], LAST[:2])
    found = utility(gone, jnp.asarray([0, 1, NOBODY]))
    assert not found[2].any()
    np.testing.assert_allclose(found[:2], expected, atol=1e-5)


def test_an_agent_with_nothing_to_look_at_has_finite_values(utility):
    assert np.isfinite(utility(VIEW, jnp.asarray([NOBODY, 1, 0]))).all()


def test_several_masks_at_once_are_each_mask_alone(network):
    own = same_subtask(VIEW, ALLOCATION)
    masks = jnp.stack([own, own & (jnp.arange(7) % 2 == 0), own & (jnp.arange(7) % 2 == 1), jnp.zeros_like(own)])
    alone = jnp.concatenate([network(VIEW, mask[None], LAST) for mask in masks])
    np.testing.assert_allclose(network(VIEW, masks, LAST), alone, atol=1e-6)
    assert len({row.tobytes() for row in np.asarray(alone)[:, 0]}) == 4


def test_one_action_alone_has_the_value_it_has_among_all(network):
    """Under each of several masks."""
    own = same_subtask(VIEW, ALLOCATION)
    masks = jnp.stack([own, own & (jnp.arange(7) % 2 == 0)])
    values = np.asarray(network(VIEW, masks, LAST))
    for action in ([1, 2, 0], [3, 0, 2]):
        found = network(VIEW, masks, LAST, action=jnp.asarray(action))
        np.testing.assert_allclose(found[..., 0], values[:, np.arange(3), action], atol=1e-6)


@pytest.fixture(scope="module", params=[None, 3])
def aim(request):
    """All actions, and so many as may have a target."""
    network = Aim(8, request.param)
    hidden = jax.random.normal(jax.random.key(1), (1, 3, 6))
    everything = jnp.ones((3, 7), bool)
    params = network.init(jax.random.key(0), hidden, VIEW.entities, VIEW.relations, everything[None], VIEW.target)
    return lambda attends=everything, target=VIEW.target: np.asarray(
        network.apply(params, hidden, VIEW.entities, VIEW.relations, attends[None], target)[0]
    )


def test_the_same_target_adds_the_same_whatever_the_action(aim):
    found = aim(target=jnp.asarray([[3, 3, 5, -1]] * 3))
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    assert not np.isclose(found[:, 0], found[:, 2]).any()
    assert not found[:, 3].any()


def test_targets_out_of_sight_add_nothing(aim):
    found = aim(attends=jnp.ones((3, 7), bool).at[0, 3].set(False))
    assert found[0, 1] == 0
    np.testing.assert_array_equal(found[:, 2:], aim()[:, 2:])


def test_sums_over_more_than_in_training_are_bounded():
    """Twice the same things and team mates make the sums of as many as in training."""
    once = random_view(agents=2, things=2, subtasks=1)
    rows = jnp.asarray([0, 1, 0, 1, 2, 3, 2, 3])
    entities, relations = once.entities[rows], once.relations[jnp.asarray([0, 1, 0, 1])][:, rows]
    trunk = Pooling(8, things=None, most_things=2, most_mates=2)
    params = trunk.init(jax.random.key(0), once.entities, once.relations, jnp.ones((1, 2, 4), bool))
    expected = trunk.apply(params, once.entities, once.relations, jnp.ones((1, 2, 4), bool))
    everything = jnp.ones((1, 4, 8), bool)
    np.testing.assert_allclose(trunk.apply(params, entities, relations, everything)[:, :2], expected, atol=1e-5)
    unbounded = Pooling(8, things=None).apply(params, entities, relations, everything)[:, :2]
    assert not np.allclose(unbounded, expected, atol=1e-2)
    few = everything.at[..., 2:4].set(False).at[..., 6:].set(False)
    np.testing.assert_allclose(trunk.apply(params, entities, relations, few)[:, :2], expected, atol=1e-5)
