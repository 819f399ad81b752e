"""StarCraft II through SMAC's interface, against a stand-in that plays our own simulator."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from helpers.smac import TASK, VIEW, StandIn

import alma
from examples.starcraft_game import StarCraftGame, armies_of

SMALL = {"fighters": (3, 4), "map_name": "made up"}


def game(name="StandIn", **options):
    return StarCraftGame(game=f"helpers.smac:{name}", **{**SMALL, **options})


def play(simulator, seed):
    """Random play of one episode; yields the view before, and view and outcome after every step."""
    rng, view, over = np.random.default_rng(seed), simulator.reset(seed), False
    while not over:
        actions = np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in view.available])
        before, (view, outcome) = view, simulator.step(actions)
        yield before, view, outcome
        over = outcome.terminated or outcome.truncated


def behind(simulator):
    """The view that the simulator behind the game has, with the armies numbered as the composition numbers them."""
    state = simulator.played.state
    ours, theirs = np.asarray(simulator.state.army), np.asarray(state.army)
    number = {int(there): int(here) for here, there in zip(ours, theirs, strict=True)}
    view = jax.device_get(VIEW(state))
    active = np.zeros_like(view.active)
    active[[number[there] for there in np.flatnonzero(view.active).tolist()]] = True
    subtask = np.array([number.get(int(army), alma.NOBODY) for army in view.subtask])
    return replace(view, subtask=subtask, active=active)


def test_what_is_seen_is_what_the_simulator_behind_the_game_shows():
    """The stand-in plays the task `starcraft`, so both sides of the interface must agree on everything."""
    simulator = game()
    for seed in range(3):
        lengths = 0
        for before, view, outcome in play(simulator, seed):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3), view, behind(simulator))
            assert not outcome.subtask_rewards[~before.active].any()
            assert not (outcome.finished & view.active).any()
            lengths += 1
        assert lengths > 5
        assert outcome.terminated
    orders = simulator.played.orders
    assert {attack for _, _, attack in orders} == {True, False}
    assert (20.0, 20.0) in {to for _, to, attack in orders if attack}, "the base is the middle of the game's map"
    simulator.close()
    assert simulator.played.closed


def test_rewards_are_those_of_the_simulator_behind_the_game(monkeypatch):
    paid = []
    step = StandIn.step

    def note(self, actions):
        result = step(self, actions)
        paid.append(result[0])
        return result

    monkeypatch.setattr(StandIn, "step", note)
    rewards = [float(outcome.reward) for _, _, outcome in play(game(), 5)]
    np.testing.assert_allclose(rewards, paid, atol=1e-3)


def test_armies_that_nobody_orders_are_seen_to_attack():
    simulator = game("SilentStandIn")
    agree = []
    for _ in play(simulator, 0):
        state, real = simulator.state, simulator.played.state
        attacks = np.asarray(state.attacking)[np.asarray(state.army)]
        really = np.asarray(real.attacking)[np.asarray(real.army)]
        walking = np.linalg.norm(np.asarray(real.moved)[TASK.rules.max_agents :], axis=1) > 0.5
        agree += (attacks == really)[walking].tolist()
    assert len(agree) > 20
    assert np.mean(agree) > 0.9


def test_a_battle_that_ends_in_the_base_does_not_start_the_game_anew():
    """SMAC launches the game whenever it has not counted a battle that it has ended itself."""
    simulator = game()
    *_, (_, _, outcome) = play(simulator, 0)
    assert outcome.metrics["breached"] == 1
    assert simulator.played._episode_count == 1
    first = simulator.played
    simulator.reset(1)
    assert simulator.played is first


def test_a_game_that_breaks_off_cuts_the_episode(monkeypatch):
    simulator = game()
    view = simulator.reset(0)
    monkeypatch.setattr(simulator.played, "step", lambda actions: (0, True, {}))
    _, outcome = simulator.step(np.argmax(view.available, axis=1))
    assert outcome.truncated
    assert not outcome.terminated


def test_agents_of_the_simulator_fit():
    """Views, actions and sizes are those of the task `starcraft`, so that its policies can play in the game."""
    for units in ("sz", "mmm"):
        known = alma.make("starcraft", units=units, balance="disadvantage").spec
        assert StarCraftGame(units=units, balance="disadvantage").spec == known


def test_what_does_not_fit_is_named(monkeypatch):
    with pytest.raises(ValueError, match="4 agents and 4 enemies, more than the 3 and 3"):
        game(fighters=3).reset(0)
    simulator = game(units="mmm", fighters=(3, 4))
    with pytest.raises(ValueError, match="units of type"):
        simulator.reset(0)
    with pytest.raises(ValueError, match="cannot import the game 'no_such_game:Env'"):
        StarCraftGame(game="no_such_game:Env").reset(0)


def test_those_who_start_together_are_an_army():
    place = np.array([(0, 0), (20, 0), (4, 0), (8, 0), (20, 3), (9, 9)], float)
    there = np.array([True] * 5 + [False])
    assert armies_of(place, there).tolist() == [0, 1, 0, 0, 1, -1]


def test_too_large_an_army_is_refused(monkeypatch):
    simulator = game()
    reset = StandIn.reset

    def all_in_one_place(self):
        reset(self)
        for unit in self.enemies.values():
            unit.pos = SimpleNamespace(x=5.0, y=5.0)

    monkeypatch.setattr(StandIn, "reset", all_in_one_place)
    monkeypatch.setattr("examples.starcraft_game.Rules", lambda **options: replace(TASK.rules, max_army_size=2))
    with pytest.raises(ValueError, match="armies of"):
        game().reset(0)
    assert simulator.played is None


def test_worker_processes_play_it():
    """The whole contract, with games in a worker process."""
    task = alma.make("examples.starcraft_game:StarCraftGame", game="helpers.smac:StandIn", fighters=[3, 4], workers=1)
    alma.check_task(task, episodes=1, steps=3)
    task.close()
