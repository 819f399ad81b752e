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


def follow(simulator, rule, view, rng):
    """Do what relations tell: bring the order that the rule has allocated; turn where a robot is in the way."""
    relations, spec = view.relations, simulator.spec
    first = spec.relations.index("next: forward")
    allocation = np.asarray(rule(view))
    actions = np.zeros(spec.agents, int)
    for robot, order in enumerate(allocation):
        wanted = 1 + int(np.argmax(relations[robot, spec.agents + order, first:]))
        blocked = view.entities[robot, spec.features.index("blocked ahead")] and wanted == 1
        can = view.available[robot]
        actions[robot] = wanted if can[wanted] and not blocked else rng.choice([0, 2, 3])
    return actions


@pytest.mark.filterwarnings("ignore")
def test_robots_that_follow_the_relations_deliver_orders():
    simulator, rng = simulator_of("rware"), np.random.default_rng(0)
    rule = jax.jit(simulator.rules["closest-first"])
    delivered = []
    for seed in range(6):
        view, over, count = simulator.reset(seed), False, 0
        while not over:
            view, outcome = simulator.step(follow(simulator, rule, view, rng))
            over = outcome.terminated or outcome.truncated
            count += outcome.metrics["delivered"]
            assert outcome.finished.sum() == count
            assert view.active.sum() <= simulator.game.request_queue_size
        assert outcome.success == (count == simulator.orders)
        delivered.append(count)
    assert max(delivered) >= 6
    assert sum(delivered) > 12  # jams of robots are left to learning


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
