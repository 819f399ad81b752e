"""The base defence: how battles begin, what armies do, who wins."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.battle import a_state

from alma import check_task
from alma.tasks.starcraft import StarCraft
from alma.tasks.starcraft.dynamics import FIRST_TARGET, battle_status
from alma.tasks.starcraft.rules import Rules

RULES = Rules()
TASK = StarCraft(RULES)
STEP = jax.jit(TASK.step)
STAY = jnp.zeros(8, jnp.int32)
KEY = jax.random.key(0)


@pytest.fixture(scope="module", params=["sz symmetric", "mmm disadvantage"])
def drawn(request):
    units, balance = request.param.split()
    rules = Rules(units=units, balance=balance)
    reset = jax.jit(jax.vmap(StarCraft(rules).reset))
    return rules, jax.device_get(reset(jax.random.split(KEY, 3000)))


def test_the_contract():
    check_task(StarCraft(Rules(units="mmm", balance="disadvantage", max_steps=40)), episodes=8)


def test_teams_are_drawn_evenly_into_any_slots(drawn):
    rules, state = drawn
    agents = rules.max_agents
    counts = np.stack([(state.units.kind[:, :agents] == k).sum(axis=1) for k in range(len(rules.types))], axis=1)
    shares = np.array([(counts == team).all(axis=1).mean() for team in rules.teams])
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares, 1 / len(shares), atol=0.013)
    used = (state.units.kind[:, :agents] >= 0).mean(axis=0)
    np.testing.assert_allclose(used, used.mean(), atol=0.05)
    theirs = np.stack([(state.units.kind[:, agents:] == k).sum(axis=1) for k in range(len(rules.types))], axis=1)
    assert ((theirs - counts).sum(axis=1) == rules.extra_enemies).all()


def test_enemies_are_split_into_armies(drawn):
    _rules, state = drawn
    total = (state.army >= 0).sum(axis=1)
    sizes = np.stack([(state.army == m).sum(axis=1) for m in range(3)], axis=1)
    assert (sizes.sum(axis=1) == total).all()
    assert ((sizes > 0) == state.exists).all()
    assert sizes.max() == 4
    armies = state.exists.sum(axis=1)
    assert (armies >= np.maximum(2, -(-total // 4))).all()
    for size in np.unique(total):
        fewest, most = max(2, -(-size // 4)), min(size, 3)
        found = armies[total == size]
        for number in range(fewest, most + 1):
            chance = 1 / (most - fewest + 1)
            assert (found == number).mean() == pytest.approx(chance, abs=4 * 0.5 / np.sqrt(len(found)) + 1e-9)


def test_places(drawn):
    rules, state = drawn
    agents = rules.max_agents
    ours = state.units.kind[:, :agents] >= 0
    from_base = np.linalg.norm(state.units.position[:, :agents] - 16, axis=-1)
    assert from_base[ours].max() < 5
    away = np.linalg.norm(state.start - 16, axis=-1)
    np.testing.assert_allclose(away, 14, atol=1e-3)
    home = np.take_along_axis(state.start, np.maximum(state.army, 0)[..., None], axis=1)
    from_home = np.linalg.norm(state.units.position[:, agents:] - home, axis=-1)
    assert from_home[state.army >= 0].max() < 3
    apart = np.asarray(rules.table.separation)[np.maximum(state.units.kind, 0)]
    ground = (state.units.kind >= 0) & ~np.asarray(rules.table.flying)[np.maximum(state.units.kind, 0)]
    for row in range(200):
        place, keep = state.units.position[row][ground[row]], apart[row][ground[row]]
        distance = np.linalg.norm(place[:, None] - place[None], axis=-1) + 99 * np.eye(len(place))
        assert (distance - keep[:, None] - keep[None] > -0.12).all()


def test_one_army_attacks_at_once(drawn):
    """And has drawn when it will retreat; those that come later do so within 19 steps. Medivacs alone stay away."""
    rules, state = drawn
    timer, attacking = state.timer[state.exists], state.attacking[state.exists]
    assert set(timer[attacking]) == set(range(10, 20)), "11 to 20 steps, of which one is counted"
    assert timer[~attacking & (timer < 10)].min() == 0
    assert timer.max() == 19
    fights = np.asarray(rules.table.fights)[np.maximum(state.units.kind[:, rules.max_agents :], 0)]
    harmless = (state.exists & ~(np.asarray(state.of_army) & fights[:, None]).any(axis=-1)).any(axis=1)
    assert (state.attacking.any(axis=1) | harmless).all()
    assert not state.attacking[~state.exists].any()
    assert not state.since_switch.any()


def test_armies_from_one_side():
    state = jax.jit(jax.vmap(StarCraft(Rules(spread=0.0)).reset))(jax.random.split(KEY, 50))
    np.testing.assert_allclose(state.start - state.start[:, :1], 0, atol=1e-4)


def angles(**options):
    """Of 200 battles: how far round the base each army starts from the first one, as a share of its even place."""
    state = jax.jit(jax.vmap(StarCraft(Rules(**options)).reset))(jax.random.split(KEY, 200))
    x, y = np.moveaxis(np.asarray(state.start, np.float64) - 16, -1, 0)
    turn = np.arctan2(y, x)
    even = 2 * np.pi * np.arange(3) / np.asarray(state.exists).sum(axis=1, keepdims=True)
    return (turn - turn[:, :1]) % (2 * np.pi) / np.maximum(even, 1e-9), np.asarray(state.exists)


@pytest.mark.parametrize("spread", [0.25, 1.0])
def test_one_army_can_have_a_spread_of_its_own(spread):
    shares, exists = angles(spread=(0.0, 1.0), one_spread=spread)
    drawn, _ = angles(spread=(0.0, 1.0))
    three = exists[:, 2]
    np.testing.assert_allclose(shares[three, 2], spread, atol=1e-4)
    np.testing.assert_allclose(shares[~three, 1], spread, atol=1e-4)
    np.testing.assert_array_equal(shares[three, 1], drawn[three, 1], "the others are drawn as before")
    assert drawn[three, 1].min() < 0.1
    assert drawn[three, 1].max() > 0.9
    assert np.std(drawn[three, 2]) > 0.2, "so is this one, if not told"


def test_one_army_can_stand_elsewhere_than_all_others():
    shares, exists = angles(spread=1.0, one_spread=0.0)
    three = exists[:, 2]
    last = np.where(three, shares[:, 2], shares[:, 1])
    # A whole turn is no turn: two even places of three armies make 1.5 of them.
    assert (np.minimum(last, np.where(three, 1.5, 2) - last) < 1e-4).all()
    np.testing.assert_allclose(shares[three, 1], 1, atol=1e-4)


def test_armies_attack_and_retreat():
    """A timer of 0: the army attacks after this step, for 11 to 20 steps, then goes home. That it has switched is seen
    before it moves."""
    rules = Rules(base_radius=0.01)
    step = jax.jit(StarCraft(rules).step)
    state = a_state(rules, [("zealot", 2.0, 2.0)], [("zealot", 16.0, 30.0)])
    state = replace(state, timer=state.timer.at[0].set(0))
    attacking, place, since = [], [], []
    for t in range(44):
        state, _ = step(jax.random.fold_in(KEY, t), state, STAY)
        attacking.append(bool(state.attacking[0]))
        place.append(float(state.units.position[8, 1]))
        since.append(int(state.since_switch[0]))
    switches = np.flatnonzero(np.diff(attacking)) + 1
    assert attacking[0]
    assert since[:3] == [0, 1, 2]
    assert place[:2] == [pytest.approx(30, abs=0.1), pytest.approx(30 - 1.125, abs=0.1)]
    assert 11 <= switches[0] <= 20
    assert 11 <= switches[1] - switches[0] <= 20
    assert place[11] == pytest.approx(30 - 11 * 1.125, abs=0.1)
    assert place[switches[1]] > place[switches[0]]


def test_who_retreats_does_not_shoot():
    state = a_state(RULES, [("stalker", 16.0, 20.0)], [("stalker", 16.0, 22.0)])
    away = replace(state, settled=jnp.zeros_like(state.settled))
    after, _ = STEP(KEY, away, STAY)
    assert float(after.units.shield[0]) == 80
    assert float(after.units.position[8, 1]) > 22
    after, _ = STEP(KEY, state, STAY)
    assert float(after.units.shield[0]) < 80, "who is idle does"


def test_a_breach_loses():
    state = a_state(RULES, [("zealot", 2.0, 2.0)], [("zealot", 16.0, 18.9), ("stalker", 2.0, 30.0)], army=[0, 1])
    state = replace(state, attacking=state.attacking.at[0].set(True))
    _after, outcome = STEP(KEY, state, STAY)
    assert not outcome.success
    assert bool(outcome.terminated)
    assert outcome.finished.tolist() == [True, False, False]
    assert float(outcome.metrics["breached"]) == 1


def test_a_beaten_army_and_a_won_battle():
    """Two armies of a nearly dead Zealot each; the first is killed, then the second."""
    ours = [("stalker", 10.0, 16.0), ("stalker", 22.0, 16.0)]
    theirs = [("zealot", 6.0, 16.0), ("zealot", 26.0, 16.0)]
    state = a_state(RULES, ours, theirs, army=[0, 1])
    weak = state.units.health.at[8:10].set(5.0)
    units = replace(state.units, health=weak, shield=state.units.shield.at[8:10].set(0))
    state = replace(state, units=units)
    attack_first = STAY.at[0].set(FIRST_TARGET)
    after, outcome = STEP(KEY, state, attack_first)
    scale = 20 / 1550
    assert float(outcome.reward) == pytest.approx((5 + 10) * scale, rel=1e-5)
    np.testing.assert_allclose(outcome.subtask_rewards, np.array([5 + 10 + 200, 0, 0]) * scale, rtol=1e-5)
    assert outcome.finished.tolist() == [True, False, False]
    assert not bool(outcome.terminated)
    assert TASK.view(after).active.tolist() == [False, True, False]

    end, outcome = STEP(KEY, after, STAY.at[1].set(FIRST_TARGET + 1))
    assert bool(outcome.success)
    assert bool(outcome.terminated)
    assert float(outcome.reward) == pytest.approx((5 + 10 + 200) * scale, rel=1e-5)
    assert battle_status(RULES, end).beaten.tolist() == [True, True, False]


def test_what_enemies_regain_counts_against_the_damage():
    """A Stalker far from everybody, with half of its shield: it regains 2 a second, so 1 in a step of half a second."""
    state = a_state(RULES, [("stalker", 2.0, 2.0)], [("stalker", 16.0, 30.0)])
    units = replace(
        state.units,
        shield=state.units.shield.at[8].set(40.0),
        since_damage=jnp.full_like(state.units.since_damage, 200),
    )
    state = replace(state, units=units)
    _, outcome = STEP(KEY, state, STAY)
    assert float(outcome.reward) == pytest.approx(-1 * 20 / 1550, rel=1e-4)
    np.testing.assert_allclose(outcome.subtask_rewards, np.array([-1, 0, 0]) * 20 / 1550, rtol=1e-4)


def test_losing_everybody_loses():
    state = a_state(RULES, [("zealot", 16.0, 25.0)], [("stalker", 16.0, 28.0)])
    weak = replace(state.units, health=state.units.health.at[0].set(1.0), shield=state.units.shield.at[0].set(0))
    _, outcome = STEP(KEY, replace(state, units=weak), STAY)
    assert bool(outcome.terminated)
    assert not bool(outcome.success)


def test_medivacs_alone_have_lost_and_need_not_be_killed():
    rules = Rules(units="mmm")
    step = jax.jit(StarCraft(rules).step)
    alone = a_state(rules, [("medivac", 16.0, 16.0)], [("marine", 16.0, 30.0)])
    assert bool(step(KEY, alone, STAY)[1].terminated)
    left = a_state(rules, [("marine", 16.0, 16.0)], [("medivac", 16.0, 30.0)])
    assert bool(step(KEY, left, STAY)[1].success)


def test_the_time_limit_is_a_defeat():
    state = replace(a_state(RULES, [("zealot", 16.0, 5.0)], [("zealot", 16.0, 30.0)]), time=jnp.int16(149))
    _, outcome = STEP(KEY, state, STAY)
    assert bool(outcome.terminated)
    assert not bool(outcome.truncated)
    assert not bool(outcome.success)
    assert float(outcome.metrics["timed_out"]) == 1


def test_focus_counts_attacks_on_the_enemy_of_an_army_that_most_attack():
    """Five of ours: three attack the first army, two of them the same enemy; one alone attacks the second army."""
    ours = [("stalker", 15.0 + i / 2, 16.0) for i in range(5)]
    theirs = [("zealot", 15.0, 20.0), ("zealot", 17.0, 20.0), ("zealot", 20.0, 16.0)]
    state = a_state(RULES, ours, theirs, army=[0, 0, 1])
    actions = STAY.at[:4].set(FIRST_TARGET + jnp.asarray([0, 1, 1, 2]))
    metrics = STEP(KEY, state, actions)[1].metrics
    assert (float(metrics["joint_shots"]), float(metrics["focused_shots"])) == (3, 2)
    dead = state.units.health.at[state.agents + 1].set(0)
    metrics = STEP(KEY, replace(state, units=replace(state.units, health=dead)), actions)[1].metrics
    assert (float(metrics["joint_shots"]), float(metrics["focused_shots"])) == (0, 0), "nobody can attack the dead"


def test_beating_an_army_at_a_disadvantage_gives_health_back():
    """Two of ours, three of theirs in two armies: 4 * 1 / (2 * 1) = twice the maximum, capped; for who is nearest."""
    rules = Rules(balance="disadvantage", heal_bonus=0.8)
    ours = [("stalker", 12.0, 28.0), ("stalker", 8.0, 10.0)]
    theirs = [("zealot", 16.0, 28.0), ("zealot", 1.0, 16.0), ("zealot", 1.0, 17.0)]
    state = a_state(rules, ours, theirs, army=[0, 1, 1])
    health = state.units.health.at[jnp.asarray([0, 1, 8])].set(jnp.asarray([20.0, 20.0, 1.0]))
    shield = state.units.shield.at[jnp.asarray([0, 1, 8])].set(0)
    state = replace(state, units=replace(state.units, health=health, shield=shield))
    after, outcome = jax.jit(StarCraft(rules).step)(KEY, state, STAY.at[0].set(FIRST_TARGET))
    assert outcome.finished.tolist() == [True, False, False]
    share = 0.8 * 1 / (2 * 1)
    assert float(after.units.health[0]) == pytest.approx(20 + share * 80)
    assert float(after.units.shield[0]) == pytest.approx(share * 80)
    assert float(after.units.health[1]) == 20, "its nearest army is another"


def test_moves():
    state = a_state(RULES, [("zealot", 16.0, 8.0)], [("zealot", 16.0, 30.0)])
    for action, way in ((1, (0, 1)), (2, (0, -1)), (3, (1, 0)), (4, (-1, 0))):
        after, _ = STEP(KEY, state, STAY.at[0].set(action))
        np.testing.assert_allclose(after.units.position[0] - 16, np.array(way) * 1.125 - [0, 8], atol=0.01)
        np.testing.assert_allclose(after.moved[0], np.array(way) * 1.125, atol=0.01)
