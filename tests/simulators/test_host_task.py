import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL
from helpers.simulators import PyDoors

import alma
from alma.allocators.rules import RuleAllocator, heuristic
from alma.play.environments import advance, start
from alma.play.episodes import play_episodes
from alma.play.scripts import scripted_actors
from alma.play.team import NOTHING_LEARNED, Team
from alma.training.sharding import Sharded
from alma.training.together import Together
from alma.training.trainer import Trainer
from alma.viewer.record import record

KEYS = jax.random.split(jax.random.key(0), 3)
NAME = "helpers.simulators:PyDoors"


@pytest.fixture(scope="module")
def task():
    task = alma.make(NAME, workers=1)
    yield task
    task.close()


def pushes(view):
    """The first agent pushes the first door that is closed."""
    return jnp.stack([jnp.argmax(view.active) + 1, 0]).astype(jnp.int32)


def test_a_state_shows_what_the_simulator_shows(task):
    states = jax.vmap(task.reset)(KEYS)
    view = jax.vmap(task.view)(states)
    seeds = jax.vmap(jax.random.bits)(KEYS) >> 1
    for row, seed in enumerate(np.asarray(seeds)):
        shown = PyDoors().reset(int(seed))
        for leaf, expected in zip(jax.tree.leaves(view), jax.tree.leaves(shown), strict=True):
            np.testing.assert_allclose(leaf[row], expected, rtol=1e-6)
    assert view.target.dtype == view.subtask.dtype == jnp.int32
    assert states.view.target.dtype == jnp.int8


def test_a_batch_of_steps_is_one_order_to_the_workers(task, monkeypatch):
    orders = []
    order = task.pool._order
    monkeypatch.setattr(
        task.pool, "_order", lambda what, seats: (orders.append((what, len(seats))), order(what, seats))
    )
    states = jax.jit(jax.vmap(task.reset))(KEYS)
    jax.block_until_ready(jax.jit(jax.vmap(task.step))(KEYS, states, jnp.zeros((3, 2), jnp.int32)))
    assert orders == [("reset", 3), ("step", 3)]


def test_a_state_can_be_stepped_once(task):
    state = task.reset(KEYS[0])
    after, outcome = task.step(KEYS[0], state, pushes(task.view(state)))
    assert not outcome.truncated
    assert after.time == 1
    again, outcome = task.step(KEYS[0], state, pushes(task.view(state)))
    assert outcome.truncated
    assert not outcome.reward
    jax.tree.map(np.testing.assert_array_equal, again.view, state.view)


def test_environments_begin_new_episodes_where_one_is_over(task):
    def step(environments, key):
        view = jax.vmap(task.view)(environments.state)
        after, reached, outcome = advance(task, key, environments, jax.vmap(pushes)(view))
        return after, (reached, after.state, outcome)

    first = start(task, KEYS[0], 5)
    reached, goes_on, outcome = jax.jit(lambda e: jax.lax.scan(step, e, jax.random.split(KEYS[1], 20)))(first)[1]
    done = np.asarray(outcome.terminated | outcome.truncated)
    assert 5 < done.sum() < 50
    assert (np.asarray(goes_on.time == 0) == done).all()
    same = [
        np.asarray(a == b).reshape(20, 5, -1).all(axis=2)
        for a, b in zip(jax.tree.leaves(reached.view), jax.tree.leaves(goes_on.view), strict=True)
    ]
    assert np.all(same, axis=0)[~done].all()
    assert not np.asarray(reached.view.active)[np.asarray(outcome.terminated)].any()
    assert np.asarray(goes_on.view.active)[done].all()


def test_it_keeps_the_contract(task):
    alma.check_task(task, episodes=3)


def test_random_numbers_from_elsewhere_are_a_breach():
    task = alma.make("helpers.simulators:Fickle", workers=1)
    with pytest.raises(alma.TaskError, match="the same seed and actions must give the same episode"):
        alma.check_task(task, episodes=3)
    task.close()


def test_failures_are_a_breach(caplog):
    task = alma.make(NAME, workers=1, trouble="raises")
    with pytest.raises(alma.TaskError, match="the simulator failed in 3 of 3 random episodes: see above"):
        alma.check_task(task, episodes=3)
    task.close()


def test_errors_come_out_of_compiled_programs_as_they_are(caplog):
    task = alma.make(NAME, workers=1, trouble="nan")
    with pytest.raises(alma.SimulatorError, match=r"step 2 of the episode with seed .*View.entities .* NaN"):
        alma.check_task(task, episodes=3)
    assert "Traceback" not in caplog.text  # JAX does not tell it as well
    task.close()


def team(task):
    return Team(scripted_actors(task, "push"), RuleAllocator(heuristic(task), needs_state=True), play_period=5)


def test_episodes_are_those_of_their_seed_however_many_are_played_at_once(task):
    """With fewer copies than episodes, they are played a few at a time."""
    few = alma.make(NAME, workers=1, simulators=2)
    results = [play_episodes(t, team(t), NOTHING_LEARNED, 5, seed=3) for t in (task, few)]
    assert results[0].length.tolist() == results[1].length.tolist()
    assert results[0].success.all()
    assert results[0].total.tolist() == results[0].metrics["pushes"].tolist()
    with pytest.raises(ValueError, match=r"3 copies .* at most 2"):
        start(few, KEYS[0], 3)
    with pytest.raises(ValueError, match="environments must be at most 2"):
        Trainer(few, SMALL)
    few.close()


def test_episodes_that_a_failure_cuts_off_are_told_of(tmp_path, caplog):
    task = alma.make(NAME, workers=2, trouble="dies", once=str(tmp_path / "once"))
    results = play_episodes(task, team(task), NOTHING_LEARNED, 4)
    assert results.success.sum() == 2  # those of the other worker
    assert "All 2 episodes of this worker are cut off." in caplog.text
    assert caplog.messages[-1] == "2 episodes were cut off because the simulator failed: they count as not solved"
    task.close()


def test_recordings_show_scenes_of_every_state(task):
    recording = record(task, team(task), NOTHING_LEARNED, episodes=1)[0]
    scenes = [task.scene(recording.state(step)) for step in range(recording.length + 1)]
    standing = [sum(marker is not None for marker in scene.markers) for scene in scenes]
    assert standing[0] == 4
    assert standing[-1] == 2  # doors that are open are not shown


def test_it_trains_on_one_device_alone(task):
    with pytest.raises(ValueError, match="py-doors is a simulator: it trains on one device"):
        Sharded(Trainer(task, SMALL), tuple(jax.devices()))
    with pytest.raises(ValueError, match=r"py-doors is a simulator: .* one by one"):
        Together(Trainer(task, SMALL), 2)


def test_impossible_options_are_refused():
    for wrong in ({"workers": -1}, {"simulators": 0}, {"time_limit": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            alma.HostTask(PyDoors, **wrong)


def test_tasks_of_the_same_simulator_are_equal():
    assert alma.HostTask(PyDoors, {"doors": 3, "agents": 2}) == alma.HostTask(NAME, {"agents": 2, "doors": 3})
