"""Environments that others wrote, where their packages are installed: they keep the contract, and a run learns."""

import importlib

import jax
import numpy as np
import pytest

import alma

WORLDS = {
    "lbforaging": "examples.foraging:Foraging",
    "rware": "examples.robot_warehouse:RobotWarehouse",
    "mpe2": "examples.spread:Spread",
    "jumanji": "examples.jumanji_foraging:JumanjiForaging",
}


def simulator_of(package):
    pytest.importorskip(package, reason=f"needs {package}: pip install 'alma-marl[examples]'")
    module, _, name = WORLDS[package].partition(":")
    return getattr(importlib.import_module(module), name)()


def play(simulator, seed, steps=1000):
    """Random play; yields every view, and the outcomes from the first step on."""
    rng, view = np.random.default_rng(seed), simulator.reset(seed)
    yield view, None
    for _ in range(steps):
        view, outcome = simulator.step(np.array([rng.choice(np.flatnonzero(row)) for row in view.available]))
        yield view, outcome
        if outcome.terminated or outcome.truncated:
            return


@pytest.mark.parametrize("package", WORLDS)
@pytest.mark.filterwarnings("ignore")  # of the packages themselves
def test_the_contract_is_kept(package):
    pytest.importorskip(package, reason=f"needs {package}: pip install 'alma-marl[examples]'")
    task = alma.make(WORLDS[package])
    alma.check_task(task, episodes=2, steps=20)
    getattr(task, "close", lambda: None)()


@pytest.mark.parametrize("package", ["lbforaging", "rware", "mpe2"])
@pytest.mark.filterwarnings("ignore")
def test_the_same_seed_gives_the_same_episode(package):
    simulator = simulator_of(package)
    one, other = (list(play(simulator, 3)) for _ in range(2))
    assert len(one) == len(other) > 10
    for (view, _), (again, _) in zip(one, other, strict=True):
        assert np.array_equal(view.entities, again.entities)
        assert np.array_equal(view.relations, again.relations)
    different = [view.entities for view, _ in play(simulator, 4)]
    assert not np.array_equal(different[0], one[0][0].entities)


def scripted_play(simulator, rule, seed):
    """The scripted actors under a rule; yields view and outcome of every step."""
    script, rule = jax.jit(simulator.scripts["scripted"]), jax.jit(simulator.rules[rule])
    view, key, over = simulator.reset(seed), jax.random.key(seed), False
    while not over:
        key, step_key = jax.random.split(key)
        view, outcome = simulator.step(np.asarray(script(step_key, view, rule(view))))
        yield view, outcome
        over = outcome.terminated or outcome.truncated


@pytest.mark.filterwarnings("ignore")
def test_robots_that_do_what_relations_say_deliver_orders():
    simulator, delivered = simulator_of("rware"), []
    for seed in range(6):
        count = 0
        for view, outcome in scripted_play(simulator, "closest-first", seed):
            count += outcome.metrics["delivered"]
            assert outcome.finished.sum() == count
            assert view.active.sum() <= simulator.game.request_queue_size
        assert outcome.success == (count == simulator.orders)
        delivered.append(count)
    assert max(delivered) >= 6
    assert sum(delivered) > 12  # how to get out of a jam is left to learning


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("package", "rule", "least"), [("mpe2", "closest-first", 9), ("lbforaging", "together", 4)])
def test_scripted_actors_solve_it(package, rule, least):
    simulator = simulator_of(package)
    solved = sum(list(scripted_play(simulator, rule, seed))[-1][1].success for seed in range(10))
    assert solved >= least


@pytest.mark.filterwarnings("ignore")
def test_foods_are_paid_by_their_levels():
    """The global reward is the environment's own; those of the foods add up to it."""
    simulator = simulator_of("lbforaging")
    total = collected = 0
    for seed in range(30):
        for _, outcome in list(play(simulator, seed))[1:]:
            assert outcome.reward == pytest.approx(outcome.subtask_rewards.sum(), abs=1e-4)
            collected += outcome.metrics["foods"]
            total += outcome.reward
    assert collected > 10
    assert total > 0


@pytest.mark.filterwarnings("ignore")
def test_landmarks_are_covered_by_those_who_stand_there():
    simulator = simulator_of("mpe2")
    simulator.reset(0)
    world = simulator.game.unwrapped.world
    for agent, landmark in zip(world.agents, world.landmarks, strict=True):
        agent.state.p_pos, agent.state.p_vel = landmark.state.p_pos.copy(), np.zeros(2)
    view, outcome = simulator.step(np.zeros(simulator.agents, int))
    close = [
        np.linalg.norm(a.state.p_pos - m.state.p_pos) < 0.1 for a, m in zip(world.agents, world.landmarks, strict=True)
    ]
    covers = view.relations[:, simulator.agents :, simulator.spec.relations.index("covers")]
    assert covers.diagonal().astype(bool).tolist() == close
    assert outcome.terminated == all(close) == outcome.success
