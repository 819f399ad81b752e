import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from views import random_view, select_entities

from alma.networks.masks import allocation_matrix, same_subtask
from alma.networks.mixer import Qmix, Sum

VIEW = random_view()
ALLOCATION = jnp.asarray([0, 1, 0])
UTILITIES = jnp.asarray([0.5, -1.0, 2.0])


@pytest.fixture(scope="module", params=["sum", "softmax", "absolute"])
def mix(request):
    mixer = Sum() if request.param == "sum" else Qmix(4, 8, 2, weights=request.param)

    def arguments(utilities, view, allocation):
        return utilities, view, same_subtask(view, allocation), allocation_matrix(allocation, 3)

    params = mixer.init(jax.random.key(1), *arguments(UTILITIES, VIEW, ALLOCATION))
    apply = jax.jit(lambda *given: mixer.apply(params, *arguments(*given)))
    return lambda utilities=UTILITIES, view=VIEW, allocation=ALLOCATION: np.asarray(apply(utilities, view, allocation))


def test_more_utility_never_makes_a_subtask_worth_less(mix):
    for agent, subtask in enumerate(ALLOCATION.tolist()):
        more = mix(UTILITIES.at[agent].add(1.0))
        assert more[subtask] > mix()[subtask]
        others = [m for m in range(3) if m != subtask]
        np.testing.assert_allclose(more[others], mix()[others], atol=1e-6)


def test_the_joint_best_is_everybodys_own_best(mix):
    """IGM: enumerate all joint actions of a random table of utilities."""
    table = jax.random.normal(jax.random.key(2), (3, 4))
    joint = {
        actions: mix(table[jnp.arange(3), jnp.asarray(actions)]).sum()
        for actions in itertools.product(range(4), repeat=3)
    }
    assert max(joint, key=joint.get) == tuple(jnp.argmax(table, axis=1).tolist())


def test_a_subtask_is_mixed_from_its_own_entities_alone(mix):
    """Run on subtask 0 alone; means are over all agent slots, so an empty slot stands in for the agent elsewhere."""
    alone = select_entities(VIEW, [0, 1, 2], [3, 6])
    np.testing.assert_allclose(mix(view=alone)[0], mix()[0], atol=1e-5)


def test_permuting_agents_changes_nothing(mix):
    order = np.array([2, 0, 1])
    permuted = select_entities(VIEW, order.tolist(), [3, 4, 5, 6])
    np.testing.assert_allclose(mix(UTILITIES[order], permuted, ALLOCATION[order]), mix(), atol=1e-5)


def test_sum_by_hand():
    members = allocation_matrix(ALLOCATION, 3)
    mixed = Sum().apply({}, UTILITIES, VIEW, same_subtask(VIEW, ALLOCATION), members)
    assert mixed.tolist() == [2.5, -1.0, 0.0]
