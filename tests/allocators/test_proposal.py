"""Proposals and critics: probabilities, symmetries, and absent agents."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import FEATURES, random_view, rename_subtasks, select_entities, without

from alma import NOBODY
from alma.allocators import networks, pairs, pointer, tabulated
from alma.allocators import proposal as proposals
from alma.allocators.networks import PairNetworks, PointerNetworks
from alma.allocators.pairs import PairEncoder
from alma.allocators.proposal import allowed_subtasks, log_probability, propose
from alma.allocators.tabulated import tabulate_if_small
from alma.nn.popart import Plain

VIEW = random_view()
PREVIOUS = jnp.asarray([0, 2, NOBODY])
EVERY = jnp.asarray(list(itertools.product(range(3), repeat=3)))


NETWORKS = {
    "pairs": PairNetworks(Plain(), 8, 6, things=2, features=tuple(range(FEATURES)), agents=3, subtasks=3),
    "pointer": PointerNetworks(Plain(), 8, heads=2, features=tuple(range(FEATURES))),
    "near pointer": PointerNetworks(Plain(), 8, heads=2, features=tuple(range(FEATURES)), use_relations=True),
}


def make_proposal(network):
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    return lambda view=VIEW, previous=PREVIOUS: network.encode_for_proposal(
        params, network.encode(params, view, previous)
    )


def make_critic(network):
    params = network.init(jax.random.key(1), VIEW, PREVIOUS)

    def values(view=VIEW, previous=PREVIOUS, every=EVERY):
        return np.asarray(network.values(params, network.encode(params, view, previous), every))

    return values


@pytest.fixture(scope="module", params=NETWORKS)
def proposal(request):
    return make_proposal(NETWORKS[request.param])


@pytest.fixture(scope="module", params=NETWORKS)
def critic(request):
    return make_critic(NETWORKS[request.param])


@pytest.fixture(scope="module")
def pair_critic():
    return make_critic(NETWORKS["pairs"])


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


@pytest.mark.parametrize(("absent", "agents"), [((), 3), ((1,), 2), ((0, 1), 1)])
def test_entropy_by_hand(absent, agents):
    """Everybody chooses among three subtasks without a preference: every agent adds log 3."""
    view = VIEW
    for agent in absent:
        view = without(view, agent)
    codes = make_proposal(NETWORKS["pairs"])(view)
    flat = codes._replace(score=jnp.zeros_like(codes.score))
    allocation = EVERY[0].at[jnp.asarray(absent, int)].set(NOBODY)
    assert float(log_probability(flat, allocation)[1]) == pytest.approx(agents * np.log(3), abs=1e-5)


def test_entropy_of_a_single_agent_is_exact(proposal):
    """With one agent there are no prefixes: along every allocation it is the entropy of the distribution."""
    codes = proposal(without(without(VIEW, 0), 2))
    logs, entropies = jax.vmap(lambda b: log_probability(codes, b))(
        jnp.asarray([(NOBODY, b, NOBODY) for b in range(3)])
    )
    np.testing.assert_allclose(entropies, -np.sum(np.exp(logs) * logs), rtol=1e-5)


def test_entropy_is_that_of_whole_allocations(proposal):
    """Averaged over allocations as they are drawn, the entropy along prefixes is the joint one, by the chain rule."""
    codes = proposal()
    logs, entropies = jax.vmap(lambda b: log_probability(codes, b))(EVERY)
    chances = np.exp(logs)
    joint = float(-(chances * logs).sum())
    assert (chances * entropies).sum() == pytest.approx(joint, rel=1e-4)
    draws = jax.jit(jax.vmap(lambda key: propose(key, codes)))(jax.random.split(jax.random.key(4), 10_000))
    drawn = np.asarray(entropies)[np.asarray(draws) @ [9, 3, 1]]
    assert float(drawn.mean()) == pytest.approx(joint, abs=4 * float(drawn.std()) / 100 + 1e-4)


def pointer_encoding(view=VIEW, previous=PREVIOUS):
    """The pointer network's encoding, before logits are tabulated."""
    network = NETWORKS["pointer"]
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    return network.proposal.apply(params["proposal"], view, previous)


def pointer_subtasks(view=VIEW, previous=PREVIOUS, taken=()):
    """The embeddings of subtasks after some agents, in their order, have been given to subtasks."""
    codes = pointer_encoding(view, previous)
    memory, embeddings = codes.start(), np.array(codes.subtasks)
    for agent, subtask in enumerate(taken):
        memory = codes.remember(agent, memory, jax.nn.one_hot(subtask, 3))
    for given, addition, _ in memory:
        embeddings += np.outer(given, addition)
    return embeddings


@pytest.mark.parametrize("agent", range(3))
def test_a_pointer_sees_agents_in_subtasks_only_once_they_are_given_to_them(agent):
    changed = replace(VIEW, entities=VIEW.entities.at[agent].add(1.0))
    np.testing.assert_array_equal(pointer_subtasks(changed), pointer_subtasks())
    before, after = pointer_subtasks(taken=(2,) * (agent + 1)), pointer_subtasks(changed, taken=(2,) * (agent + 1))
    np.testing.assert_array_equal(after[:2], before[:2])
    assert not np.allclose(after[2], before[2], atol=1e-4)


@pytest.mark.parametrize("previous", list(itertools.permutations((0, 2, NOBODY))))
def test_a_pointer_s_subtasks_do_not_depend_on_who_was_in_them(previous):
    """Previous allocations are features of agents: they matter to agents' own embeddings alone."""
    previous = jnp.asarray(previous)
    np.testing.assert_array_equal(pointer_subtasks(previous=previous), pointer_subtasks())
    moved = np.asarray(pointer_encoding(previous=previous).agents != pointer_encoding().agents).any(axis=-1)
    assert moved.tolist() == (previous != PREVIOUS).tolist()


def test_a_pointer_s_subtasks_do_not_look_at_each_other():
    changed = replace(VIEW, entities=VIEW.entities.at[3].add(1.0))  # thing 0, of subtask 0
    assert (pointer_subtasks(changed) != pointer_subtasks()).any(axis=1).tolist() == [True, False, False]


@pytest.mark.parametrize("kind", ["pointer", "near pointer"])
@pytest.mark.parametrize("allocation", [(1, 1, 1), (1, 1, 0), (0, 2, 0), (2, 1, 0), (1, NOBODY, 1)])
def test_a_pointer_by_hand(allocation, kind):
    """Logits are h . (g + counts + U r) / sqrt(H), r for relations if they are seen; then g changes where it was
    chosen."""
    network = NETWORKS[kind]
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    codes = network.proposal.apply(params["proposal"], VIEW, PREVIOUS)
    table = tabulate_if_small(codes)
    near = np.zeros((3, 3, 8))
    if kind == "near pointer":
        relations = np.asarray(VIEW.relations)[:, 3:]
        of_subtasks = np.stack([relations[:, 0] + relations[:, 3], relations[:, 1], relations[:, 2]], axis=1)
        near = of_subtasks @ np.asarray(params["proposal"]["params"]["relation"])
    g, given, memory, team = np.array(codes.subtasks), np.zeros(3), codes.start(), table.start()
    for agent, subtask in enumerate(allocation):
        counts = 0.2 * np.stack([np.array([2, 1, 1]), given], axis=1)  # things, agents
        pointed = g + counts @ np.asarray(codes.counts_kernel) + np.asarray(codes.counts_bias) + near[agent]
        expected = pointed @ np.asarray(codes.agents[agent]) / np.sqrt(8)
        np.testing.assert_allclose(codes.logits(agent, memory), expected, rtol=1e-5)
        np.testing.assert_allclose(table.logits(agent, team), expected, rtol=1e-5)
        if subtask != NOBODY:
            both = np.maximum(np.concatenate([g[subtask], codes.agents[agent]]), 0)
            g[subtask] += both @ np.asarray(codes.update_kernel) + np.asarray(codes.update_bias)
            given[subtask] += 1
        memory = codes.remember(agent, memory, jax.nn.one_hot(subtask, 3))
        team = table.remember(agent, team, jax.nn.one_hot(subtask, 3))


@pytest.mark.parametrize("kind", ["pointer", "near pointer"])
def test_tabulated_logits_are_those_computed_proposal_by_proposal(kind, monkeypatch):
    """The same proposals are drawn, with the same log-probabilities, entropies and gradients."""
    network, key = NETWORKS[kind], jax.random.key(3)
    view, previous = random_view(agents=4, things=3, subtasks=3), jnp.asarray([0, NOBODY, 2, 1])
    params = network.init(key, view, previous)
    encoded = network.encode(params, without(view, 2), previous)

    def everything():
        drawn = network.proposals(params, key, encoded, 6)

        def total(params):
            logs, entropies = network.log_probabilities(params, encoded, drawn)
            return jnp.sum(logs) + jnp.sum(jnp.sin(entropies)), (logs, entropies)

        return drawn, *jax.grad(total, has_aux=True)(params)

    monkeypatch.setattr(tabulated, "MOST_EMBEDDINGS", 12)
    found = everything()
    monkeypatch.setattr(tabulated, "MOST_EMBEDDINGS", 11)
    expected = everything()
    np.testing.assert_array_equal(found[0], expected[0])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found[1:], expected[1:])


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_batch_is_judged_as_one_by_one(kind):
    network = NETWORKS[kind]
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    views = jax.tree.map(lambda *leaves: jnp.stack(leaves), VIEW, without(VIEW, 1))
    previous = jnp.stack([PREVIOUS, PREVIOUS[::-1]])
    allocations = jnp.stack([EVERY[:5], EVERY[-5:].at[:, 1].set(NOBODY)])
    together = network.log_probabilities(params, network.encode(params, views, previous), allocations)
    for row, view in enumerate((VIEW, without(VIEW, 1))):
        codes = network.encode_for_proposal(params, network.encode(params, view, previous[row]))
        for number, allocation in enumerate(allocations[row]):
            expected = log_probability(codes, allocation)
            np.testing.assert_allclose([part[row, number] for part in together], expected, atol=1e-5)


def test_the_critic_does_not_care_for_the_names_of_agents_and_subtasks(pair_critic):
    agents, subtasks = np.array([1, 2, 0]), np.array([2, 0, 1])
    renamed = rename_subtasks(select_entities(VIEW, agents.tolist(), [3, 4, 5, 6]), subtasks)
    new_name = np.argsort(subtasks)
    previous = np.array([NOBODY if b < 0 else new_name[b] for b in PREVIOUS.tolist()])[agents]
    every = new_name[np.asarray(EVERY)][:, agents]
    expected = pair_critic()
    np.testing.assert_allclose(pair_critic(renamed, jnp.asarray(previous), jnp.asarray(every)), expected, atol=1e-5)


@pytest.mark.parametrize("kind", NETWORKS)
def test_subtasks_by_other_names_are_as_likely_and_worth_as_much(kind):
    """The paper's networks give each name an embedding of its own, which goes with it."""
    network, order = NETWORKS[kind], np.array([2, 0, 1])
    new_name = np.argsort(order)
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    renamed = jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf[order] if path[-1].key == "subtask" and leaf.shape[0] == 3 else leaf, params
    )
    previous = np.array([NOBODY if b < 0 else new_name[b] for b in PREVIOUS.tolist()])

    def judged(params, view, previous, allocations):
        encoded = network.encode(params, view, jnp.asarray(previous))
        logs, entropies = network.log_probabilities(params, encoded, allocations)
        return logs, entropies, network.values(params, encoded, allocations)

    expected = judged(params, VIEW, PREVIOUS, EVERY)
    found = judged(renamed, rename_subtasks(VIEW, order.tolist()), previous, jnp.asarray(new_name)[EVERY])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(("kind", "matters"), [("pointer", False), ("near pointer", True)])
def test_relations_matter_where_they_are_seen(kind, matters):
    network = NETWORKS[kind]
    params = network.init(jax.random.key(0), VIEW, PREVIOUS)
    farther = replace(VIEW, relations=VIEW.relations + 1)

    def judged(view):
        encoded = network.encode(params, view, PREVIOUS)
        return *network.log_probabilities(params, encoded, EVERY), network.values(params, encoded, EVERY)

    for one, other in zip(judged(VIEW), judged(farther), strict=True):
        assert (not np.allclose(one, other, atol=1e-5)) == matters


def test_absent_agents_change_no_value(critic):
    gone = without(VIEW, 2)
    allocations = EVERY.at[:, 2].set(NOBODY)
    fewer = select_entities(VIEW, [0, 1], [3, 4, 5, 6])
    expected = critic(fewer, PREVIOUS[:2], EVERY[:, :2])
    np.testing.assert_allclose(critic(gone, PREVIOUS, allocations), expected, atol=1e-5)


def test_finished_subtasks_are_worth_nothing(pair_critic):
    """Everybody in a finished subtask: only the unattended ones count, whoever the agents are."""
    done = replace(VIEW, active=jnp.asarray([True, False, True]))
    everybody, nobody = jnp.asarray([[1, 1, 1]]), jnp.full((1, 3), NOBODY)
    np.testing.assert_allclose(pair_critic(done, every=everybody), pair_critic(done, every=nobody), atol=1e-6)


def test_the_order_of_agents_is_nothing_to_the_critic(critic):
    order = np.array([2, 0, 1])
    permuted = select_entities(VIEW, order.tolist(), [3, 4, 5, 6])
    np.testing.assert_allclose(critic(permuted, PREVIOUS[order], EVERY[:, order]), critic(), atol=1e-5)


def test_allocations_differ_in_value(critic):
    assert np.ptp(critic()) > 1e-3


def test_values_do_not_depend_on_what_else_is_asked(critic):
    np.testing.assert_allclose(critic(every=EVERY[5:6])[0], critic()[5], atol=1e-5)


def test_values_computed_in_portions_are_those_of_the_whole(monkeypatch):
    """Portions are of whole states; the last one may be smaller."""
    network = NETWORKS["near pointer"]
    params = network.init(jax.random.key(1), VIEW, PREVIOUS)
    views = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[without(VIEW, agent) for agent in (0, 1, 2, 0, 1)])
    encoded = network.encode(params, views, jnp.stack([PREVIOUS] * 5))
    allocations = EVERY[:20].reshape(5, 4, 3)
    expected = network.values(params, encoded, allocations)
    monkeypatch.setattr(networks, "PORTION", 8)  # two states
    np.testing.assert_allclose(network.values(params, encoded, allocations), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["pairs", "pointer"])
def test_moves_have_the_values_of_the_allocations_that_they_lead_to(name):
    """The networks over pairs add up what a move changes; others value every allocation."""
    network, view = NETWORKS[name], replace(VIEW, active=VIEW.active.at[1].set(False))
    params = network.init(jax.random.key(1), VIEW, PREVIOUS)
    encoded = network.encode(params, view, PREVIOUS)
    for allocation in ([0, 2, 0], [2, NOBODY, 0]):
        allowed = allowed_subtasks(view, 3).at[2].set(False)
        found = network.values_of_moves(params, encoded, jnp.asarray(allocation), allowed)
        moved = [[[*allocation[:a], m, *allocation[a + 1 :]] for m in range(3)] for a in range(3)]
        expected = network.values(params, encoded, jnp.asarray(moved).reshape(9, 3)).reshape(3, 3)
        np.testing.assert_allclose(found, jnp.where(allowed, expected, -jnp.inf), atol=1e-5)


def test_summaries_of_larger_teams_are_those_of_average_teams():
    """Twice the same team and the same subtasks look to every pair like the team once, not like twice as much."""
    once = random_view(agents=2, things=2, subtasks=2)
    twice = random_view(agents=4, things=4, subtasks=4)
    rows = jnp.asarray([0, 1, 0, 1, 2, 3, 2, 3])
    relations = once.relations[jnp.asarray([0, 1, 0, 1])][:, rows]
    twice = replace(twice, entities=once.entities[rows], relations=relations)
    nobody = jnp.full(4, NOBODY)
    bounded = PairEncoder(8, 1, agents=2, subtasks=2)
    params = bounded.init(jax.random.key(0), once, nobody[:2])
    expected, _ = bounded.apply(params, once, nobody[:2])
    found, _ = bounded.apply(params, twice, nobody)
    np.testing.assert_allclose(found[:2, :2], expected, atol=1e-5)
    unbounded, _ = PairEncoder(8, 1).apply(params, twice, nobody)
    assert not np.allclose(unbounded[:2, :2], expected, atol=1e-2)


@pytest.mark.parametrize("kind", NETWORKS)
def test_loops_over_many_agents_are_no_other_than_unrolled_ones(monkeypatch, kind):
    network, key = NETWORKS[kind], jax.random.key(3)
    view = random_view(agents=4, things=4, subtasks=3)
    previous = jnp.asarray([0, NOBODY, 2, 1])
    params = network.init(key, view, previous)
    encoded = network.encode(params, view, previous)
    monkeypatch.setattr(tabulated, "MOST_EMBEDDINGS", 0)

    def everything():
        drawn = network.proposals(params, key, encoded, 5)
        drawn = drawn.at[0, 1].set(NOBODY)
        return drawn, network.values(params, encoded, drawn), network.log_probabilities(params, encoded, drawn)

    unrolled = everything()
    for module in (pairs, pointer, proposals):
        monkeypatch.setattr(module, "UNROLLED", 2)
    looped = everything()
    np.testing.assert_array_equal(looped[0], unrolled[0])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), looped[1:], unrolled[1:])
