"""One step of the city, worked out by hand for every rule, and properties over random play."""

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import reference
from helpers.city import BUILDER, FAST, FIREFIGHTER, GENERALIST, RULES, SCALE, SLOW, act, can, city, position
from hypothesis import given, settings
from hypothesis import strategies as st

from alma.task.choice import choose_uniformly
from alma.tasks.save_the_city import SaveTheCity, dynamics
from alma.tasks.save_the_city.rules import Action, Rules
from alma.tasks.save_the_city.scenarios import Building

SITE = (7, 7)
WEST, EAST, NORTH, SOUTH = (6, 7), (8, 7), (7, 8), (7, 6)
FAR_AWAY = Building((1, 1), health=0.5)

approx = partial(pytest.approx, abs=1e-6)


def crew(*types):
    """Agents around the site, in the order west, east, north, south."""
    return list(zip(types, (WEST, EAST, NORTH, SOUTH), strict=False))


class TestFighting:
    @pytest.mark.parametrize(
        ("types", "effect"),
        [
            ([FIREFIGHTER], 0.25),
            ([BUILDER], 0.25 * 0.05),
            ([BUILDER, GENERALIST], 0.25 * (0.05 + 0.45)),
            ([FIREFIGHTER, GENERALIST], 0.25),
            ([FIREFIGHTER, BUILDER], 0.25 * 1.05),
            ([FIREFIGHTER, BUILDER, GENERALIST], 0.25 * (1.05 + 0.45)),
            ([BUILDER, GENERALIST, GENERALIST], 0.25 * (0.05 + 0.45)),
            ([BUILDER, BUILDER, GENERALIST], 0.25 * (0.1 + 0.45)),
        ],
    )
    def test_strength_falls_by_the_joint_effect(self, types, effect):
        state = city(crew(*types), Building(SITE, FAST, 0.5, fire=0.8))
        after, _ = act(state, *[Action.FIGHT] * len(types))
        assert float(after.fire[0]) == approx(0.8 - effect)
        assert float(after.health[0]) == approx(0.5 - 0.035 * (0.8 - effect))

    @pytest.mark.parametrize("action", [Action.FIGHT, Action.STAY])
    def test_a_fire_without_effective_fighters_grows(self, action):
        state = city(crew(GENERALIST), Building(SITE, FAST, 0.5, fire=0.5))
        after, _ = act(state, action)
        assert float(after.fire[0]) == approx(0.55)
        assert float(after.health[0]) == approx(0.5 - 0.035 * 0.55)

    def test_a_fire_grows_to_1_at_most(self):
        after, _ = act(city(crew(BUILDER), Building(SITE, fire=0.95)), Action.STAY)
        assert float(after.fire[0]) == 1

    def test_putting_out_a_fire_is_rewarded(self):
        after, outcome = act(city(crew(FIREFIGHTER), Building(SITE, fire=0.2), FAR_AWAY), Action.FIGHT)
        assert float(after.fire[0]) == 0
        assert float(after.health[0]) == approx(0.5)
        assert float(outcome.subtask_rewards[0]) == approx(0.5 * SCALE)
        assert float(outcome.reward) == approx(0.5 * SCALE)
        assert float(outcome.metrics["extinguished"]) == 1

    def test_a_fire_put_out_does_no_damage_even_at_the_brink(self):
        after, outcome = act(city(crew(FIREFIGHTER), Building(SITE, FAST, 0.001, fire=0.25)), Action.FIGHT)
        assert float(after.health[0]) == approx(0.001)
        assert not bool(outcome.finished[0])

    def test_a_building_that_burns_down_beside_a_fighter_is_not_extinguished(self):
        state = city(crew(FIREFIGHTER), Building(SITE, FAST, 0.01, fire=1.0), FAR_AWAY)
        after, outcome = act(state, Action.FIGHT)
        assert float(after.health[0]) == 0
        assert float(after.fire[0]) == 0
        assert float(outcome.metrics["extinguished"]) == 0
        assert float(outcome.metrics["burned_down"]) == 1
        assert float(outcome.subtask_rewards[0]) == approx((-0.1 - 20) * SCALE)


class TestBurning:
    @pytest.mark.parametrize(("kind", "rate"), [(FAST, 1.0), (SLOW, 0.5)])
    def test_damage_depends_on_the_type(self, kind, rate):
        after, outcome = act(city(crew(BUILDER), Building(SITE, kind, 0.5, fire=1.0), FAR_AWAY), Action.STAY)
        assert float(after.health[0]) == approx(0.5 - 0.035 * rate)
        assert float(outcome.subtask_rewards[0]) == approx(-10 * 0.035 * rate * SCALE)

    def test_freezing_stops_the_damage_but_not_the_growth(self):
        after, _ = act(city(crew(GENERALIST), Building(SITE, fire=0.5)), Action.FREEZE)
        assert float(after.health[0]) == approx(0.5)
        assert float(after.fire[0]) == approx(0.55)

    def test_freezing_and_fighting_together(self):
        state = city(crew(GENERALIST, FIREFIGHTER), Building(SITE, fire=0.5))
        after, _ = act(state, Action.FREEZE, Action.FIGHT)
        assert float(after.health[0]) == approx(0.5)
        assert float(after.fire[0]) == approx(0.25)


class TestBuilding:
    @pytest.mark.parametrize(
        ("types", "work"),
        [
            ([BUILDER], 0.125),
            ([FIREFIGHTER], 0.125 * 0.05),
            ([GENERALIST], 0.0),
            ([FIREFIGHTER, GENERALIST], 0.125 * (0.05 + 0.45)),
            ([BUILDER, GENERALIST], 0.125),
            ([BUILDER, FIREFIGHTER], 0.125 * 1.05),
            ([BUILDER, FIREFIGHTER, GENERALIST], 0.125 * (1.05 + 0.45)),
            ([FIREFIGHTER, FIREFIGHTER, GENERALIST, GENERALIST], 0.125 * (0.1 + 0.45)),
        ],
    )
    def test_health_grows_by_the_joint_work(self, types, work):
        after, outcome = act(city(crew(*types), Building(SITE), FAR_AWAY), *[Action.BUILD] * len(types))
        assert float(after.health[0]) == approx(0.5 + work)
        assert float(outcome.subtask_rewards[0]) == approx(10 * work * SCALE)

    def test_completion_pays_its_subtask_more_than_the_team(self):
        after, outcome = act(city(crew(BUILDER), Building(SITE, health=0.9), FAR_AWAY), Action.BUILD)
        assert float(after.health[0]) == 1
        assert outcome.finished.tolist() == [True, False, False, False, False, False]
        assert float(outcome.subtask_rewards[0]) == approx((1 + 20) * SCALE)
        assert float(outcome.reward) == approx((1 + 1) * SCALE)
        assert float(outcome.metrics["completed"]) == approx(0.5)
        assert not bool(outcome.done)

    def test_a_complete_building_never_burns_again(self):
        state = city(crew(BUILDER), Building(SITE, health=1.0, timer=1), FAR_AWAY)
        after, outcome = act(state, Action.STAY)
        assert float(after.fire[0]) == 0
        assert int(after.fire_timer[0]) == 1
        assert float(outcome.subtask_rewards[0]) == 0


class TestFireTimer:
    def test_it_ticks(self):
        after, _ = act(city(crew(BUILDER), Building(SITE, timer=5)), Action.STAY)
        assert int(after.fire_timer[0]) == 4
        assert float(after.fire[0]) == 0

    @pytest.mark.parametrize("fire", [0.0, 0.4])
    def test_running_out_lights_a_fire_of_full_strength(self, fire):
        after, _ = act(city(crew(BUILDER), Building(SITE, fire=fire, interval=70, timer=1)), Action.STAY)
        assert float(after.fire[0]) == 1
        assert int(after.fire_timer[0]) == 70

    def test_the_new_fire_does_no_damage_before_the_next_step(self):
        after, _ = act(city(crew(BUILDER), Building(SITE, timer=1)), Action.STAY)
        assert float(after.health[0]) == approx(0.5)

    def test_a_fire_can_break_out_in_the_step_that_put_one_out(self):
        after, outcome = act(city(crew(FIREFIGHTER), Building(SITE, fire=0.25, timer=1)), Action.FIGHT)
        assert float(after.fire[0]) == 1
        assert float(outcome.metrics["extinguished"]) == 1


class TestMoving:
    @pytest.mark.parametrize(
        ("action", "goal"),
        [
            (Action.NORTH, (3, 4)),
            (Action.EAST, (4, 3)),
            (Action.SOUTH, (3, 2)),
            (Action.WEST, (2, 3)),
            (Action.FAR_NORTH, (3, 5)),
            (Action.FAR_EAST, (5, 3)),
            (Action.FAR_SOUTH, (3, 1)),
            (Action.FAR_WEST, (1, 3)),
            (Action.STAY, (3, 3)),
        ],
    )
    def test_moves(self, action, goal):
        state = city([(GENERALIST, (3, 3))], Building((13, 13)))
        assert position(act(state, action)[0]) == goal

    def test_only_generalists_move_far_or_freeze(self):
        for kind in (FIREFIGHTER, BUILDER):
            state = city([(kind, (3, 3))], Building((13, 13)))
            assert can(state) == {Action.STAY, Action.NORTH, Action.EAST, Action.SOUTH, Action.WEST}
            assert position(act(state, Action.FAR_NORTH)[0]) == (3, 3)

    def test_the_border_stops_moves(self):
        state = city([(GENERALIST, (0, 15))], Building((13, 13)))
        assert can(state) == {Action.STAY, Action.EAST, Action.SOUTH, Action.FAR_EAST, Action.FAR_SOUTH}

    def test_a_far_move_jumps_over_what_is_between(self):
        state = city([(GENERALIST, (7, 9)), (BUILDER, (7, 8))], Building((13, 13)))
        assert Action.SOUTH not in can(state)
        assert position(act(state, Action.FAR_SOUTH)[0]) == (7, 7)

    def test_buildings_block_even_when_burned_down(self):
        state = city([(FIREFIGHTER, WEST)], Building(SITE, health=0.0), FAR_AWAY)
        assert Action.EAST not in can(state)

    def test_nobody_moves_onto_a_cell_that_was_occupied_at_the_start(self):
        state = city([(FIREFIGHTER, (3, 3)), (BUILDER, (4, 3))], Building((13, 13)))
        after, _ = act(state, Action.EAST, Action.EAST)
        assert [position(after, 0), position(after, 1)] == [(3, 3), (5, 3)]

    def test_unavailable_work_counts_as_staying(self):
        state = city([(BUILDER, (3, 3))], Building((13, 13)))
        after, _ = act(state, Action.BUILD)
        assert position(after) == (3, 3)
        assert float(after.health[0]) == approx(0.5)

    @pytest.mark.parametrize("shares", [(1 / 2, 1 / 2), (1 / 4, 1 / 4, 1 / 2), (1 / 8, 1 / 8, 1 / 4, 1 / 2)])
    def test_of_several_that_want_a_cell_later_agents_get_it_more_often(self, shares):
        wanting, draws = len(shares), 4000
        starts, moves = [(2, 3), (4, 3), (3, 4), (3, 2)], [Action.EAST, Action.WEST, Action.SOUTH, Action.NORTH]
        state = city([(BUILDER, start) for start in starts[:wanting]], Building((13, 13)))
        actions = jnp.asarray(moves[:wanting] + [Action.STAY] * (RULES.max_agents - wanting))
        keys = jax.random.split(jax.random.key(0), draws)
        after, _ = jax.jit(jax.vmap(lambda key: dynamics.step(RULES, key, state, actions)))(keys)
        positions = np.asarray(after.agent_position)[:, :wanting]
        arrived = (positions == (3, 3)).all(axis=2)
        assert (arrived.sum(axis=1) == 1).all()
        assert (positions[~arrived] == np.broadcast_to(starts[:wanting], positions.shape)[~arrived]).all()
        found, shares = arrived.mean(axis=0), np.array(shares)
        assert (np.abs(found - shares) < 4 * np.sqrt(shares * (1 - shares) / draws)).all()

    def test_empty_slots_are_not_in_the_way(self):
        # Unused slots hold zeros: they must not count as agents at (0, 0).
        state = city([(BUILDER, (1, 0))], Building((13, 13)))
        assert Action.WEST in can(state)
        assert {position(act(state, Action.WEST, seed=seed)[0]) for seed in range(20)} == {(0, 0)}


@st.composite
def contests(draw):
    """Agents on different cells that stay or want a cell on which nobody stands, and a coin for each of them."""
    cells = st.tuples(st.integers(0, 2), st.integers(0, 2))
    starts = draw(st.lists(cells, min_size=1, max_size=6, unique=True))
    goals = [draw(st.one_of(st.just(start), cells.filter(lambda cell: cell not in starts))) for start in starts]
    return starts, goals, draw(st.lists(st.booleans(), min_size=len(starts), max_size=len(starts)))


LOSES_CELL = jax.jit(dynamics.loses_cell)


def settled(starts, goals, heads):
    """Where agents end up; a slot without an agent among them, that seems to want the first agent's cell."""
    present = jnp.asarray([True] * len(goals) + [False])
    back = LOSES_CELL(jnp.asarray([*goals, goals[0]], jnp.int8), present, jnp.asarray([*heads, True]))
    return [start if sent else goal for start, goal, sent in zip(starts, goals, back[:-1].tolist(), strict=True)]


class TestConflicts:
    @settings(deadline=None)
    @given(contests())
    def test_pair_after_pair_one_goes_back(self, contest):
        starts, goals, heads = contest
        places = settled(starts, goals, heads)
        # Whoever comes later in the order of agents tosses: heads, and it stays.
        assert places == reference.settle(starts, goals, lambda _, second: heads[second])
        assert len(set(places)) == len(places)

    @pytest.mark.parametrize("wanting", [2, 3, 4, 5])
    def test_a_coin_for_each_agent_is_as_good_as_one_for_each_pair(self, wanting):
        starts, goals = [(number, 0) for number in range(wanting)], [(0, 1)] * wanting
        each_agent = Counter(
            settled(starts, goals, heads).index((0, 1)) for heads in product([False, True], repeat=wanting)
        )
        each_pair = Counter()
        for tosses in product([False, True], repeat=wanting - 1):
            coins = iter(tosses)
            places = reference.settle(starts, goals, lambda *_, coins=coins: next(coins))
            each_pair[places.index((0, 1))] += 2  # there is one toss less than agents
        assert each_agent == each_pair


class TestWork:
    def test_at_a_burning_building(self):
        for kind, extra in ((FIREFIGHTER, set()), (GENERALIST, {Action.FREEZE})):
            actions = can(city([(kind, WEST)], Building(SITE, fire=0.1)))
            work = actions & {Action.FIGHT, Action.BUILD, Action.FREEZE}
            assert work == {Action.FIGHT} | extra

    @pytest.mark.parametrize(("health", "work"), [(0.5, {Action.BUILD}), (1.0, set()), (0.0, set())])
    def test_at_a_building_that_does_not_burn(self, health, work):
        actions = can(city([(GENERALIST, WEST)], Building(SITE, health=health)))
        assert actions & {Action.FIGHT, Action.BUILD, Action.FREEZE} == work

    def test_only_generalists_freeze(self):
        assert Action.FREEZE not in can(city([(BUILDER, WEST)], Building(SITE, fire=0.1)))

    def test_diagonal_is_not_adjacent(self):
        assert Action.BUILD not in can(city([(BUILDER, (6, 6))], Building(SITE)))


class TestEnd:
    def test_all_complete_is_solved(self):
        state = city(crew(BUILDER), Building(SITE, health=0.95), Building((1, 1), health=1.0))
        _, outcome = act(state, Action.BUILD)
        assert bool(outcome.terminated)
        assert bool(outcome.success)
        assert not bool(outcome.truncated)
        assert float(outcome.reward) == approx((0.5 + 1 + 20) * SCALE)

    def test_one_burned_down_is_not_solved(self):
        state = city(crew(BUILDER), Building(SITE, health=0.95), Building((1, 1), health=0.0))
        _, outcome = act(state, Action.BUILD)
        assert bool(outcome.terminated)
        assert not bool(outcome.success)
        assert float(outcome.reward) == approx((0.5 + 1) * SCALE)

    def test_time_runs_out(self):
        _, outcome = act(city(crew(BUILDER), Building(SITE), time=149), Action.BUILD)
        assert bool(outcome.truncated)
        assert not bool(outcome.terminated)
        assert not bool(act(city(crew(BUILDER), Building(SITE), time=148), Action.BUILD)[1].done)

    def test_finishing_in_the_last_step_is_a_real_end(self):
        _, outcome = act(city(crew(BUILDER), Building(SITE, health=0.95), time=149), Action.BUILD)
        assert bool(outcome.terminated)
        assert not bool(outcome.truncated)


def play(rules, seed, steps=150):
    """Random play of one episode, legal or not: states (one more than steps), outcomes and actions."""
    task = SaveTheCity(rules)

    def body(state, key):
        action_key, step_key, wild_key = jax.random.split(key, 3)
        legal = choose_uniformly(action_key, task.view(state).available)
        wild = jax.random.randint(wild_key, legal.shape, 0, len(Action))
        actions = jnp.where(jax.random.uniform(wild_key, legal.shape) < 0.8, legal, wild)
        after, outcome = task.step(step_key, state, actions)
        return after, (state, after, outcome)

    reset_key, key = jax.random.split(jax.random.key(seed))
    return jax.lax.scan(body, task.reset(reset_key), jax.random.split(key, steps))[1]


PLAY = {rules: jax.jit(partial(play, rules)) for rules in (Rules(), Rules(agents=(8, 24)))}


@pytest.mark.parametrize("rules", PLAY, ids=["default", "large"])
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31 - 1))
def test_invariants_of_random_play(rules, seed):
    before, after, outcome = jax.device_get(PLAY[rules](seed))
    agents, present = after.agent_type[0] >= 0, after.building_type[0] >= 0
    cells = np.concatenate([after.agent_position[:, agents], after.building_position[:, present]], axis=1)
    codes = np.sort(cells[..., 0].astype(int) * 100 + cells[..., 1], axis=1)
    assert (np.diff(codes, axis=1) > 0).all(), "two things share a cell"
    assert ((cells >= 0) & (cells < rules.grid_size)).all()
    assert ((after.health >= 0) & (after.health <= 1)).all()
    assert ((after.fire >= 0) & (after.fire <= 1)).all()

    finished = outcome.finished
    assert (finished[:-1] <= finished[1:]).all(), "finished is final"
    assert not after.fire[finished].any()
    assert (after.health[:-1][finished[:-1]] == after.health[1:][finished[:-1]]).all()
    assert not outcome.subtask_rewards[:, ~present].any()

    moved = np.abs(after.agent_position.astype(int) - before.agent_position).sum(axis=2)
    assert (moved <= np.where(after.agent_type == 2, 2, 1)).all()
    _assert_rewards_add_up(rules, before, after, outcome, present)


def _assert_rewards_add_up(rules, before, after, outcome, present):
    """The global reward is the sum of the subtasks' with another price of completion, plus the solution's."""
    completed = ((after.health == 1) & (before.health < 1) & present).sum(axis=1)
    running = np.cumsum(outcome.terminated) - outcome.terminated == 0  # rewards repeat beyond the end
    expected = outcome.subtask_rewards.sum(axis=1) + rules.reward_scale * (
        completed * (rules.complete_reward - rules.complete_subtask_reward) + rules.solve_reward * outcome.success
    )
    np.testing.assert_allclose(outcome.reward[running], expected[running], atol=1e-4)


def test_the_same_key_gives_the_same_episode():
    first, second, other = (jax.device_get(PLAY[RULES](seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True))
    assert not np.array_equal(first[1].agent_position, other[1].agent_position)


def test_jit_and_vmap_change_nothing():
    state = city(crew(FIREFIGHTER, BUILDER, GENERALIST), Building(SITE, fire=0.7), FAR_AWAY)
    states = [state, replace(state, fire=state.fire / 2), replace(state, time=jnp.int16(149))]
    actions = jnp.asarray([Action.FIGHT, Action.NORTH, Action.FREEZE, 0, 0])
    keys = jax.random.split(jax.random.key(0), len(states))
    eager = [dynamics.step(RULES, key, one, actions) for key, one in zip(keys, states, strict=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    batch = jax.jit(jax.vmap(partial(dynamics.step, RULES), in_axes=(0, 0, None)))(keys, stacked, actions)
    for i, one in enumerate(eager):
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(batch), strict=True):
            np.testing.assert_allclose(a, b[i], rtol=1e-6, atol=1e-6)
