"""Parts of several runs put together."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL, Doors

from alma.play.episodes import play_episodes
from alma.play.situation import Situation
from alma.runs.config import RunConfig
from alma.runs.policy import Policy, check_numbers, load, one_number_each, transplant
from alma.runs.pretrained import DEFAULT, locate
from alma.runs.weights import read_weights, write_weights


def untrained(method="alma", seed=0, period=1):
    options = replace(SMALL, allocator=replace(SMALL.allocator, period=period))
    config = RunConfig("helpers.doors:Doors", method=method, seed=seed, options=options)
    trainer = config.make_trainer()
    return Policy(config, trainer.play_params(trainer.init(jax.random.key(seed))))


@pytest.fixture(scope="module")
def one():
    return untrained(seed=1)


@pytest.fixture(scope="module")
def other():
    return untrained(seed=2, period=2)


def test_a_policy_prints_in_a_line(one):
    assert repr(one) == "Policy(alma on helpers.doors:Doors, preset fast, seed 1)"


@pytest.fixture(scope="module")
def situations(one):
    """Many first situations of the task."""
    state = jax.vmap(one.task.reset)(jax.random.split(jax.random.key(0), 64))
    nobody = jnp.full((64, 2), -1)
    return Situation(state, jax.vmap(one.task.view)(state), nobody, nobody)


def played(playing, situations):
    """Actions in the first situations when everybody is at their own door, and allocations there."""
    (team, params), keys = playing, jax.random.split(jax.random.key(1), 64)
    allocations = jax.vmap(lambda *given: team.allocator.greedy(params["allocator"], *given))(keys, situations)
    fixed = situations._replace(allocation=jnp.broadcast_to(jnp.arange(2), (64, 2)))
    actions = jax.vmap(lambda *given: team.actors.greedy(params["actors"], *given))(keys, fixed)
    return np.asarray(actions), np.asarray(allocations)


def test_actors_of_one_run_under_the_allocator_of_another(one, other, situations):
    of_one, of_other = played((one.team, one.params), situations), played((other.team, other.params), situations)
    assert not np.array_equal(of_one[0], of_other[0])
    assert not np.array_equal(of_one[1], of_other[1])
    for playing in (transplant(one, actors=other), transplant(other, allocator=one)):
        actions, allocations = played(playing, situations)
        np.testing.assert_array_equal(actions, of_other[0])
        np.testing.assert_array_equal(allocations, of_one[1])
        assert playing[0].play_period == one.period == 1, "an allocator keeps its period"


def test_a_rule_in_place_of_an_allocator(one, situations):
    playing = transplant(one, allocator="heuristic:owner")
    own = jnp.argsort(situations.state["owner"], axis=1)
    actions, allocations = played(playing, situations)
    np.testing.assert_array_equal(allocations, own)
    np.testing.assert_array_equal(actions, played((one.team, one.params), situations)[0])
    assert (played(transplant(one, allocator="fixed:1,0"), situations)[1] == [1, 0]).all()


def test_a_script_in_place_of_actors(one, situations):
    playing = transplant(one, actors="scripted")
    actions, allocations = played(playing, situations)
    keys = jax.random.split(jax.random.key(1), 64)
    own = jnp.broadcast_to(jnp.arange(2), (64, 2))
    np.testing.assert_array_equal(actions, jax.vmap(one.task.policies["scripted"])(keys, situations.state, own))
    np.testing.assert_array_equal(allocations, played((one.team, one.params), situations)[1])
    assert playing[0].actors.explain_actions(None, keys[0], situations) is None, "a script rates nothing"
    flat = transplant(untrained("flat"), actors="scripted", allocator="fixed:0,1")
    np.testing.assert_array_equal(played(flat, situations)[0], actions)


def test_scripts_are_those_of_the_task_that_is_played(one, situations):
    class Lazy(Doors):
        @property
        def policies(self):
            return {"scripted": lambda key, state, allocation: jnp.zeros_like(allocation)}

    actions, _ = played(transplant(one, actors="scripted", task=Lazy()), situations)
    assert not actions.any()


def test_a_search_takes_what_the_critic_finds_best(one, situations):
    _, found = played(transplant(one, allocator="search"), situations)
    every = np.array([[a, b] for a in range(2) for b in range(2)])
    for row in range(8):
        view = jax.tree.map(lambda leaf, row=row: leaf[row], situations.view)
        best = every[np.argmax(one.allocation_values(view, every))]
        np.testing.assert_array_equal(found[row], best)


def test_whole_episodes_can_be_played(one, other):
    results = play_episodes(one.task, *transplant(one, actors=other, allocator="search"), 16, parallel=16)
    assert (results.length <= 2).all()


@pytest.mark.parametrize(
    ("allocation", "last_action", "message"),
    [
        ([0, 2], None, r"an allocation must have numbers from -1 \(none\) to 1, not \[0, 2\]"),
        ([0, -2], None, "an allocation must have numbers from -1"),
        ([0, 1], [0, 99], r"last actions must have numbers from -1 \(none\) to"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(one, situations, allocation, last_action, message):
    view = jax.tree.map(lambda leaf: leaf[0], situations.view)
    given = (np.array(allocation), None if last_action is None else jnp.array(last_action))
    with pytest.raises(ValueError, match=message):
        one.act(view, *given)
    with pytest.raises(ValueError, match=message):
        one.values(view, *given)


@pytest.mark.parametrize("given", [[0, 1, 0], [[0, 1]], 0])
def test_numbers_are_one_for_each_agent(given):
    """Users have no checks of types, which would find this in tests before the policy does."""
    with pytest.raises(ValueError, match="an allocation must have one number for each of 2 agents, not the shape"):
        one_number_each("an allocation", given, 2, 2)
    assert one_number_each("an allocation", [0, 1], 2, 2).tolist() == [0, 1]


def test_allocations_to_value_must_mean_something(one, situations):
    view = jax.tree.map(lambda leaf: leaf[0], situations.view)
    with pytest.raises(ValueError, match=r"allocations must have numbers from -1 \(none\) to 1, not \[\[9, 9\]\]"):
        one.allocation_values(view, np.array([[9, 9]]))
    with pytest.raises(ValueError, match="an allocation must have whole numbers, not float32"):
        one_number_each("an allocation", [0.5, 0.5], 2, 2)
    with pytest.raises(ValueError, match="one number for each of 2 agents"):
        check_numbers("allocations", jnp.zeros((3, 1), int), 2, 2, axes=2)


def test_weights_are_saved_where_there_is_a_folder(one, tmp_path):
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere to save weights in"):
        one.save(tmp_path / "nowhere" / "x.safetensors")
    assert not any(tmp_path.iterdir())


def test_coached_policies_play(situations):
    policy = untrained("copa")
    view = jax.tree.map(lambda leaf: leaf[0], situations.view)
    strategy = policy.advise(view, jax.random.key(0))
    assert strategy.shape == (2, 32)
    allocation = policy.allocate(view, jax.random.key(0))
    assert allocation.tolist() == [-1, -1]
    with pytest.raises(ValueError, match="follow a coach"):
        policy.act(view, allocation)
    with_advice = policy.values(view, allocation, None, strategy)
    assert not np.allclose(with_advice, policy.values(view, allocation, None, 0 * strategy))
    assert policy.act(view, allocation, None, strategy).tolist() == np.argmax(with_advice, axis=1).tolist()
    assert untrained().advise(view, jax.random.key(0)) is None


@pytest.mark.parametrize(
    ("make_error", "message"),
    [
        (lambda: transplant(untrained("flat")), "the actors of 'flat' know no subtasks"),
        (lambda: transplant(untrained(), actors=untrained("copa")), "the actors of 'copa' know no subtasks"),
        (lambda: transplant(untrained(), allocator=untrained("flat")), "the method 'flat' has no allocator"),
        (lambda: transplant(untrained("random"), allocator="search"), "a search needs a critic"),
        (lambda: transplant(untrained(), allocator="magic"), "unknown allocator 'magic'"),
        (lambda: transplant(untrained(), actors="magic"), "unknown actors 'magic': choose from random, scripted"),
        (lambda: transplant(untrained("flat"), actors="scripted"), "the method 'flat' has no allocator"),
    ],
)
def test_what_does_not_fit_is_refused(make_error, message):
    with pytest.raises(ValueError, match=message):
        make_error()


def test_runs_on_different_tasks_do_not_fit(one):
    city = RunConfig("save-the-city", options=SMALL)
    stranger = Policy(city, None)
    with pytest.raises(ValueError, match=r"differ in name .'doors' in training, 'save-the-city' here"):
        transplant(one, actors=stranger)
    with pytest.raises(ValueError, match=r"differ in name .'doors' in training, 'save-the-city' here"):
        transplant(one, allocator=stranger)


def test_other_options_may_change_what_there_is_to_see():
    policy = Policy(RunConfig("save-the-city", {"grid_size": 10}, options=SMALL), None)
    with pytest.raises(ValueError, match=r"differ in features \('x = 10' only here, 'x = 11' only here, and 10 more\)"):
        policy.task_with({"grid_size": 16})


def test_the_task_and_the_team_can_differ_from_training(one):
    assert one.task_with() == one.task
    assert one.task_with({"limit": 5}) == Doors(limit=5)
    with pytest.raises(ValueError, match=r"differ in name .'doors' in training, 'save-the-city' here"):
        one.task_with(name="save-the-city")
    assert one.team_with() == (one.team, one.params)
    assert one.team_with(allocator="heuristic:owner", task=Doors(limit=5)) == transplant(
        one, allocator="heuristic:owner", task=Doors(limit=5)
    )


def test_rules_are_those_of_the_task_that_is_played(one):
    longer = Doors(limit=5)
    playing = transplant(one, allocator="heuristic", task=longer)
    results = play_episodes(longer, *playing, 16, parallel=16)
    assert results.length.max() > 2


def test_policies_under_a_rule_ask_for_the_state(situations):
    policy = untrained("heuristic")
    view, state = jax.tree.map(lambda leaf: leaf[0], (situations.view, situations.state))
    with pytest.raises(ValueError, match="whose rule looks at the state"):
        policy.allocate(view, jax.random.key(0))
    assert sorted(policy.allocate(view, jax.random.key(0), None, state).tolist()) == [0, 1]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path, number):
    """Evaluating them would give a table that looks like any other."""
    file = tmp_path / "weights.safetensors"
    data, tensors = read_weights(locate(DEFAULT))
    name, array = next((name, array) for name, array in tensors.items() if array.size)
    spoiled = array.copy()
    spoiled.flat[-1] = number
    write_weights(file, {**tensors, name: spoiled}, data)
    with pytest.raises(ValueError, match=r"weights\.safetensors cannot be played: 1 of its arrays hold NaN"):
        load(file)
