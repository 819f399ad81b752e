"""Who is sent where by rule, and what scripted actors do."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from helpers.battle import a_state

from alma import NOBODY
from alma.allocators.rules import allocator_by_name
from alma.play.episodes import play_episodes
from alma.play.scripts import scripted_actors
from alma.play.team import NOTHING_LEARNED, Team
from alma.tasks.starcraft import StarCraft
from alma.tasks.starcraft.dynamics import FIRST_TARGET
from alma.tasks.starcraft.heuristics import dynamic, matching, most_urgent, scripted_actions
from alma.tasks.starcraft.rules import Rules

RULES = Rules()
TASK = StarCraft(RULES)
OURS = [("stalker", 16.0, 16.0), ("zealot", 17.0, 16.0), ("stalker", 15.0, 16.0)]
THEIRS = [("zealot", 16.0, 30.0), ("stalker", 2.0, 16.0), ("stalker", 2.0, 17.0), ("stalker", 2.0, 15.0)]
STATE = a_state(RULES, OURS, THEIRS, army=[0, 1, 1, 1])


def test_matching_by_hand():
    """The first Stalker goes to the Stalkers, the Zealot to the Zealot; the second Stalker still finds one."""
    assert matching(RULES, STATE)[:4].tolist() == [1, 0, 1, NOBODY]


def test_matching_without_a_match():
    """Two Zealots against one Zealot and Stalkers: the second goes where nobody is yet, the third where most are."""
    ours = [("zealot", 16.0, 16.0), ("zealot", 17.0, 16.0), ("zealot", 15.0, 16.0)]
    state = a_state(RULES, ours, THEIRS, army=[0, 1, 1, 1])
    assert matching(RULES, state)[:3].tolist() == [0, 1, 1]


def test_the_order_is_the_episodes_own():
    ours = [("zealot", 16.0, 16.0), ("zealot", 17.0, 16.0)]
    state = a_state(RULES, ours, THEIRS, army=[0, 1, 1, 1])
    assert matching(RULES, state)[:2].tolist() == [0, 1]
    turned = replace(state, order=state.order[::-1])
    assert matching(RULES, turned)[:2].tolist() == [1, 0]


def test_dynamic_prefers_who_attacks():
    state = replace(STATE, attacking=STATE.attacking.at[0].set(True))
    assert dynamic(RULES, state)[:3].tolist() == [0, 0, 0]
    assert dynamic(RULES, STATE).tolist() == matching(RULES, STATE).tolist()


def test_all_go_to_the_most_urgent_army():
    """Both armies are 14 away, one of the second is nearer; those that attack come first."""
    theirs = [("zealot", 16.0, 30.0), ("stalker", 2.0, 16.0), ("stalker", 4.0, 16.0)]
    state = a_state(RULES, OURS, theirs, army=[0, 1, 1])
    assert most_urgent(RULES, state)[:4].tolist() == [1, 1, 1, NOBODY]
    attacked = replace(state, attacking=state.attacking.at[0].set(True))
    assert most_urgent(RULES, attacked)[:4].tolist() == [0, 0, 0, NOBODY]
    beaten = replace(attacked, units=replace(state.units, health=state.units.health.at[8].set(0)))
    assert most_urgent(RULES, beaten)[:4].tolist() == [1, 1, 1, NOBODY], "an army that is beaten attacks nobody"


def test_medivacs_are_not_urgent():
    rules = Rules(units="mmm")
    theirs = [("marine", 16.0, 26.0), ("marine", 2.0, 16.0), ("medivac", 10.0, 16.0)]
    state = a_state(rules, [("marine", 16.0, 16.0)], theirs, army=[0, 1, 1])
    assert most_urgent(rules, state)[0] == 0


def test_beaten_armies_and_the_dead_are_left_alone():
    state = replace(STATE, units=replace(STATE.units, health=STATE.units.health.at[9:12].set(0)))
    assert matching(RULES, state)[:3].tolist() == [0, 0, 0]
    dead = replace(STATE, units=replace(STATE.units, health=STATE.units.health.at[1].set(0)))
    assert matching(RULES, dead)[:3].tolist() == [1, NOBODY, 1]


def test_the_dead_can_be_counted():
    """Two of three Stalkers are dead. Counting the living, the second Stalker finds none unclaimed."""
    health = STATE.units.health.at[jnp.asarray([9, 10])].set(0)
    state = replace(STATE, units=replace(STATE.units, health=health))
    assert matching(RULES, state)[2] == 0
    assert matching(RULES, state, count_dead=True)[2] == 1


def test_scripted_actors_shoot_the_weakest_of_their_own_army():
    ours = [("stalker", 16.0, 16.0)]
    theirs = [("zealot", 20.0, 16.0), ("zealot", 16.0, 20.0), ("zealot", 12.0, 16.0)]
    state = a_state(RULES, ours, theirs, army=[0, 0, 1])
    state = replace(state, units=replace(state.units, health=state.units.health.at[jnp.asarray([9, 10])].set(50.0)))
    sent = jnp.full(8, NOBODY).at[0].set(0)
    assert int(scripted_actions(RULES, jax.random.key(0), state, sent)[0]) == FIRST_TARGET + 1
    assert int(scripted_actions(RULES, jax.random.key(0), state, sent.at[0].set(1))[0]) == FIRST_TARGET + 2


def test_scripted_actors_walk_to_their_army():
    sent = jnp.asarray([0, 1, NOBODY] + [NOBODY] * 5)
    actions = scripted_actions(RULES, jax.random.key(0), STATE, sent)
    assert actions[:3].tolist() == [1, 4, 0], "north, west, nowhere"


def test_scripted_medivacs_heal():
    rules = Rules(units="mmm")
    ours = [("marine", 16.0, 16.0), ("marine", 17.0, 16.0), ("medivac", 15.0, 16.0)]
    state = a_state(rules, ours, [("marine", 16.0, 30.0)])
    health = state.units.health.at[:2].set(jnp.asarray([40.0, 20.0]))
    state = replace(state, units=replace(state.units, health=health))
    together = jnp.zeros(8, jnp.int32).at[3:].set(NOBODY)
    assert int(scripted_actions(rules, jax.random.key(0), state, together)[2]) == FIRST_TARGET + 1


def test_scripted_actors_win_some_battles():
    """Known: 0.40 of all; 0.02 under random allocation."""
    team = Team(scripted_actors(TASK, "scripted"), allocator_by_name(TASK, "heuristic:dynamic"), 3)
    assert play_episodes(TASK, team, NOTHING_LEARNED, 256).success_rate == pytest.approx(0.4, abs=0.12)
