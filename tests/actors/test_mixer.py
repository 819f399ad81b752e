import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import ACTIONS, SPEC, random_view, rename_subtasks, select_entities, without

from alma.actors.mixer import Independent, Qmix, Sum, SumAndValue
from alma.actors.scope import Masked
from alma.nn.attention import Pooling

VIEW = random_view()
ALLOCATION = jnp.asarray([0, 1, 0])
UTILITIES = jnp.asarray([0.5, -1.0, 2.0])
LAST = jnp.asarray([1, 3, -1])
KINDS = {
    "sum": Sum(),
    "sum and value": SumAndValue(Pooling(8, things=2), ACTIONS, 8),
    "softmax": Qmix(ACTIONS, 4, 8, 2),
    "absolute": Qmix(ACTIONS, 4, 8, 2, weights="absolute", offsets="absolute"),
}


def see(view=VIEW, allocation=ALLOCATION):
    return Masked(SPEC).look(jax.random.key(0), view, allocation)


def begin(network):
    return network.init(jax.random.key(1), UTILITIES[None], see(), see().mixer_mask[None], LAST)


@pytest.fixture(scope="module", params=KINDS)
def mixer(request):
    network = KINDS[request.param]
    return network, begin(network)


@pytest.fixture(scope="module")
def mix(mixer):
    network, params = mixer
    apply = jax.jit(
        lambda utilities, sight, last: network.apply(params, utilities[None], sight, sight.mixer_mask[None], last)
    )
    return lambda utilities=UTILITIES, view=VIEW, allocation=ALLOCATION, last=LAST: np.asarray(
        apply(utilities, see(view, allocation), last)
    )


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
    alone = without(select_entities(VIEW, [0, 1, 2], [3, 6]), 1)
    emptied = replace(alone, entities=alone.entities.at[1].set(0), relations=alone.relations.at[1].set(0))
    values = mix(UTILITIES.at[1].set(0), emptied, ALLOCATION.at[1].set(-1))
    np.testing.assert_allclose(values[0], mix()[0], atol=1e-5)


def test_what_is_outside_a_subtask_does_not_matter_to_its_value(mix):
    outside = jnp.asarray([1, 4, 5])
    changed = replace(VIEW, entities=VIEW.entities.at[outside].add(3.0), relations=VIEW.relations.at[1].add(3.0))
    np.testing.assert_allclose(mix(UTILITIES.at[1].add(3.0), changed)[[0, 2]], mix()[[0, 2]], atol=1e-5)


def test_permuting_agents_changes_nothing(mix):
    order = np.array([2, 0, 1])
    permuted = select_entities(VIEW, order.tolist(), [3, 4, 5, 6])
    np.testing.assert_allclose(mix(UTILITIES[order], permuted, ALLOCATION[order], LAST[order]), mix(), atol=1e-5)


def test_renaming_subtasks_permutes_their_values(mix):
    order = np.array([2, 0, 1])
    renamed = mix(view=rename_subtasks(VIEW, order), allocation=jnp.argsort(jnp.asarray(order))[ALLOCATION])
    np.testing.assert_allclose(renamed, mix()[order], atol=1e-5)


def test_the_dead_do_not_count(mix):
    """An agent that is gone changes nothing, whatever it was allocated to."""
    gone = without(VIEW, 1)
    utilities = UTILITIES.at[1].set(0)
    one = mix(utilities, gone, ALLOCATION)
    np.testing.assert_allclose(one, mix(utilities, gone, ALLOCATION.at[1].set(0)), atol=1e-6)
    np.testing.assert_allclose(one, mix(utilities, gone, ALLOCATION.at[1].set(-1)), atol=1e-6)


def test_values_are_of_states_not_of_what_is_seen(mix):
    """Mixers look at what agents cannot see, too."""
    blind = replace(VIEW, visible=jnp.zeros_like(VIEW.visible))
    np.testing.assert_allclose(mix(view=blind), mix(), atol=1e-6)


def test_a_group_without_utility_changes_nothing(mixer, mix):
    """Agents that imagine groups are mixed as if there were twice as many of them."""
    network, params = mixer
    sight = see()
    twice = jnp.stack([UTILITIES, jnp.zeros(3)])
    groups = jnp.stack([sight.mixer_mask, ~sight.mixer_mask])
    np.testing.assert_allclose(network.apply(params, twice, sight, groups, LAST), mix(), atol=1e-5)


def test_weights_of_a_group_are_made_under_its_mask():
    sight, network = see(), KINDS["softmax"]
    params = begin(network)
    groups = sight.mixer_mask[None]
    whole = network.apply(params, UTILITIES[None], sight, groups, LAST)
    narrow = network.apply(params, UTILITIES[None], sight, groups & (jnp.arange(7) < 3), LAST)
    assert not np.allclose(whole[:2], narrow[:2])
    nothing = jnp.zeros((1, 3))
    unchanged = network.apply(params, nothing, sight, groups & (jnp.arange(7) < 3), LAST)
    np.testing.assert_allclose(network.apply(params, nothing, sight, groups, LAST), unchanged, atol=1e-6)


@pytest.mark.parametrize("kind", ["softmax", "absolute"])
def test_hypernetworks_see_what_members_did_last(kind):
    """A subtask's weights depend on the last actions of its own agents, and on nobody else's."""
    network, sight = KINDS[kind], see()
    params = begin(network)

    def mixed(last):
        return np.asarray(network.apply(params, UTILITIES[None], sight, sight.mixer_mask[None], jnp.asarray(last)))

    before, after = mixed([1, 3, -1]), mixed([1, 3, 2])
    assert before[0] != after[0]
    np.testing.assert_array_equal(before[1:], after[1:])


def test_absolute_offsets_by_hand():
    """Without utilities, a subtask is worth elu(|b1|) . w_final + |V|: never less than nothing."""
    signed, absolute = Qmix(ACTIONS, 4, 8, 2), Qmix(ACTIONS, 4, 8, 2, offsets="absolute")
    sight = see()
    nothing, groups = jnp.zeros((1, 3)), sight.mixer_mask[None]
    least = []
    for seed in range(8):
        params = signed.init(jax.random.key(seed), nothing, sight, groups, LAST)
        least.append(float(jnp.min(signed.apply(params, nothing, sight, groups, LAST))))
        values = absolute.apply(params, nothing, sight, groups, LAST)
        assert (values >= 0).all()
        np.testing.assert_array_equal(values[2], 0)  # nobody is there
    assert min(least) < 0


def test_sum_by_hand():
    mixed = Sum().apply({}, UTILITIES[None], see(), see().mixer_mask[None], LAST)
    assert mixed.tolist() == [2.5, -1.0, 0.0]
    twice = Sum().apply(
        {}, jnp.stack([UTILITIES, 10 * UTILITIES]), see(), see().mixer_mask[None].repeat(2, axis=0), LAST
    )
    assert twice.tolist() == [27.5, -11.0, 0.0]


def test_independent_agents_by_hand():
    mixer, sight = Independent(), see(allocation=jnp.asarray([0, -1, 1]))
    assert mixer.apply({}, UTILITIES[None], sight, sight.mixer_mask[None], LAST).tolist() == [0.5, 0.0, 2.0]
    assert mixer.per_value(jnp.asarray([5.0, 7.0, 9.0]), sight.members).tolist() == [5.0, 0.0, 7.0]


def test_the_value_of_a_situation_is_added_to_the_sum_of_utilities():
    """It depends on the situation of those who contribute, and not on their utilities."""
    network = KINDS["sum and value"]
    params = begin(network)

    def value(utilities, view=VIEW):
        sight = see(view)
        mixed = network.apply(params, utilities[None], sight, sight.mixer_mask[None], LAST)
        return np.asarray(mixed - Sum().apply({}, utilities[None], sight, sight.mixer_mask[None], LAST))

    np.testing.assert_allclose(value(UTILITIES), value(3 * UTILITIES), atol=1e-6)
    elsewhere = value(UTILITIES, replace(VIEW, relations=VIEW.relations.at[1].add(1.0)))  # of the second subtask
    assert elsewhere[1] != pytest.approx(value(UTILITIES)[1], abs=1e-4)
    np.testing.assert_allclose(elsewhere[[0, 2]], value(UTILITIES)[[0, 2]], atol=1e-6)
