"""Every method, from its name to what it learns."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import MINE, SMALL, Doors
from helpers.views import SPEC, random_view, without

from alma import check_task
from alma.actors.actors import Actors
from alma.actors.options import ActorNetworkOptions
from alma.actors.qmix import actor_batch
from alma.actors.scope import Flat
from alma.allocators.aql import allocator_batch, aql_loss
from alma.allocators.learned import LearnedAllocator
from alma.learning import replay
from alma.play.episodes import begin, play_episodes, play_step
from alma.training.methods import find_method, make_team, params_like
from alma.training.presets import with_actors
from alma.training.trainer import Trainer, compile_chunk


def test_the_task_itself():
    check_task(Doors(), episodes=4)


def success(trainer, state):
    return play_episodes(trainer.task, trainer.team, trainer.play_params(state), 512, parallel=512).success_rate


def train(method, options=SMALL):
    trainer = Trainer(Doors(), options, method)
    state = trainer.init(jax.random.key(0))
    before = success(trainer, state)
    chunk = compile_chunk(trainer, 80)
    for _ in range(4):
        state, metrics = chunk(state)
    return before, success(trainer, state), metrics


def mixed_by(mixer):
    networks = ActorNetworkOptions(width=32, hidden=32, hyper_width=32, mixer=mixer)
    return replace(SMALL, actors=replace(SMALL.actors, networks=networks))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        pytest.param("alma", SMALL, id="alma"),
        pytest.param("alma-no-mask", SMALL, id="no mask"),
        pytest.param("heuristic", mixed_by("qmix"), id="heuristic, qmix"),
        pytest.param("flat", mixed_by("independent"), id="flat, independent"),
        pytest.param("copa", with_actors(SMALL, "refil"), id="copa, refil"),
    ],
)
def test_methods_learn_to_open_the_doors(method, options):
    before, after, metrics = train(method, options)
    assert before < 0.5
    assert after > 0.97
    assert ("imagined_loss" in metrics) == (method == "copa")


def test_random_allocation_learns_as_far_as_it_can():
    """An agent is sent to its own door with chance 1/2, and for sure once the other is open. So both open at once
    with 1/4; one, and then the other, with 1/2; none, and then both, with 1/16."""
    _, after, _ = train("random")
    assert after == pytest.approx(13 / 16, abs=0.06)


@pytest.fixture(scope="module")
def replays():
    """Replay to learn from: of actors that learn a value for each subtask, and of those that learn one for all."""

    def play(method):
        trainer = Trainer(Doors(), SMALL, method)
        run = jax.jit(lambda state: jax.lax.scan(lambda s, _: trainer.step(s), state, length=20)[0])
        played = run(trainer.init(jax.random.key(0)))
        return {name: getattr(played, name) for name in ("steps", "decisions", "env_steps")}

    return {"each subtask": play("alma"), "all": play("flat")}


@pytest.fixture(
    scope="module",
    params=[
        *((method, "pooling") for method in ("alma", "alma-no-mask", "flat", "copa")),
        *((method, "attention") for method in ("alma", "copa")),
    ],
    ids=" with ".join,
)
def learning(request, replays):
    """A trainer with something in its replay: every kind of actors with our networks, and two with the paper's."""
    method, trunk = request.param
    networks = ActorNetworkOptions(trunk=trunk, width=8, heads=2, hidden=8, hyper_width=8, mixer="qmix")
    ours = trunk == "pooling"
    actors = replace(SMALL.actors, imagination=0.5, networks=networks, popart=not ours)
    allocation = replace(SMALL.allocator.networks, kind="pairs" if ours else "pointer", width=8, heads=2)
    allocator = replace(SMALL.allocator, networks=allocation, popart=not ours)
    trainer = Trainer(Doors(), replace(SMALL, actors=actors, allocator=allocator), method)
    replay = replays["each subtask" if trainer.allocator.learns else "all"]
    return trainer, replace(trainer.init(jax.random.key(0)), **replay)


def gradients_of(loss, level):
    return jax.jit(jax.grad(loss, argnums=(0, 1)))(level.params, level.target)


STATISTICS = ("['mean']", "['square']", "['begun']")
"""Of Pop-Art: they follow the targets, and have no gradient."""


SINGLE = [f"['proposal']['params']['MultiHead_0']['{part}']['kernel']" for part in ("key", "query")]
"""A door is a subtask of one entity, so that the pointer network's attention has nothing to choose among."""


def assert_reached(live, target, unused=()):
    named = [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(live)]
    silent = [name for name, leaf in named if not name.endswith(STATISTICS) and not jnp.any(leaf != 0)]
    assert silent == list(unused)
    assert not any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(target))


def test_gradients_reach_all_actors_and_no_target(learning):
    trainer, state = learning
    actors, key = trainer.actors, jax.random.key(1)
    windows = replay.sample_windows(key, state.steps, actors.options.batch, 2, max_since_decision=1)

    def loss(params, target):
        batch = actor_batch(params, target, actors.networks, trainer.views, key, windows, gamma=0.9, reward_scale=1.0)
        return actors.loss(params, key, batch)[0]

    assert_reached(*gradients_of(loss, state.actors))


def test_gradients_reach_all_of_an_allocator_and_no_target(learning):
    trainer, state = learning
    allocator, key = trainer.allocator, jax.random.key(1)
    if not allocator.learns:
        return
    decisions = replay.sample_decisions(key, state.decisions, 64, state.env_steps, 10_000)

    def loss(params, target):
        batch = allocator_batch(
            params,
            target,
            allocator.networks,
            trainer.views,
            key,
            decisions,
            gamma=0.9,
            reward_scale=1.0,
            candidates=allocator.candidates,
        )
        return aql_loss(params, allocator.networks, batch, 0.01)[0]

    unused = SINGLE if allocator.options.networks.kind == "pointer" else ()
    assert_reached(*gradients_of(loss, state.allocator), unused)


@pytest.mark.parametrize("method", ["heuristic", "random", "flat", "copa"])
def test_nothing_is_kept_for_allocators_that_do_not_learn(method):
    state = Trainer(Doors(), SMALL, method).state_like()
    assert state.decisions is None
    assert not jax.tree.leaves(state.allocator.params)


def test_rewards_are_owed_to_who_was_there():
    """Independent agents, one of which is absent in the state after the first row, another after the second."""
    views = [random_view(seed) for seed in range(4)]
    views[1] = without(views[1], 1)
    views[3] = without(views[3], 0)
    networks = ActorNetworkOptions(width=8, heads=2, hidden=8, mixer="independent")
    options = replace(SMALL.actors, networks=networks)
    actors = Actors(SPEC, options, Flat(SPEC), training_period=1)
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *views)
    nobody = jnp.full((2, 2, 3), -1)
    rows = replay.Step(
        state=jnp.asarray([[0, 2], [1, 3]]),
        allocation=nobody,
        last_action=nobody,
        action=jnp.zeros((2, 2, 3), int),
        rewards=jnp.asarray([[[5.0], [7.0]], [[0.0], [0.0]]]),
        terminated=jnp.asarray([[True, False], [False, False]]),
        truncated=jnp.zeros((2, 2), bool),
        since_decision=jnp.zeros((2, 2), int),
        end=jnp.zeros((2, 2), int),
    )
    windows = replay.Windows(rows, rows.state, rows.state, has_final_state=jnp.zeros((2, 2), bool))

    @jax.jit
    def targets(key):
        params = actors.init(key, jax.tree.map(lambda leaf: leaf[:2], table), nobody[0]).params
        return actor_batch(
            params,
            params,
            actors.networks,
            lambda index: jax.tree.map(lambda leaf: leaf[index], table),
            key,
            windows,
            gamma=0.9,
            reward_scale=1.0,
        )

    batch = targets(jax.random.key(0))
    # The first episode ended: everybody who was there is owed its reward, whoever begins the next one.
    assert batch.weights.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert batch.target[0].tolist() == [5, 5, 5]
    assert float(batch.target[1, 0]) == 7, "an agent that died has no future"
    assert float(batch.target[1, 1]) != 7


def test_strategies_change_at_decision_points_only():
    options = replace(SMALL, allocator=replace(SMALL.allocator, period=3))
    trainer = Trainer(Doors(limit=8), options, "copa")
    state = trainer.init(jax.random.key(0))

    def body(state, _):
        after, _ = trainer.step(state)
        return after, (state.rollout, after.rollout)

    _, (before, after) = jax.device_get(jax.jit(lambda s: jax.lax.scan(body, s, length=30))(state))
    changed = (before.in_force.strategy != after.in_force.strategy).any(axis=(-1, -2))
    # Where an episode ended, nothing tells any more whether its last step was a decision.
    goes_on = after.deciding
    np.testing.assert_array_equal(changed[goes_on], (after.in_force.since_decision == 1)[goes_on])
    assert changed[goes_on].any()
    assert not changed[goes_on].all()

    playing = trainer.task, trainer.team, trainer.play_params(state)
    episodes = begin(*playing, jax.random.split(jax.random.key(1), 32))
    first, _ = jax.jit(lambda now: play_step(*playing, now))(episodes)
    second, _ = jax.jit(lambda now: play_step(*playing, now))(first)
    assert (first.in_force.strategy != episodes.in_force.strategy).any()
    # Where no door opened at the first step, the second is no decision point.
    quiet = ~first.state["open"].any(axis=-1)
    assert quiet.any()
    np.testing.assert_array_equal(second.in_force.strategy[quiet], first.in_force.strategy[quiet])


def test_a_method_of_ones_own():
    assert find_method("helpers.doors:MINE") is MINE
    trainer = Trainer(Doors(), SMALL, "helpers.doors:MINE")
    assert type(trainer.actors) is Actors
    assert isinstance(trainer.allocator, LearnedAllocator)
    assert params_like(make_team(Doors(), SMALL, "helpers.doors:BY_RULE"), Doors())["allocator"] == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("magic", "unknown method 'magic': choose from alma, alma-no-mask"),
        ("flat:er", "the method 'flat' has no variants: write flat"),
        ("nowhere:MINE", "cannot import the method"),
        ("helpers.doors:YOURS", "cannot import the method"),
        ("helpers.doors:SMALL", "must be an alma.Method"),
    ],
)
def test_unknown_methods_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        find_method(name)
