"""What agents see, and what they may do about it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.battle import a_state

from alma import NOBODY
from alma.task.view import available_under
from alma.tasks.starcraft import StarCraft
from alma.tasks.starcraft.dynamics import FIRST_TARGET
from alma.tasks.starcraft.rules import Rules

RULES = Rules(units="mmm")
TASK = StarCraft(RULES)
SPEC = TASK.spec
A = SPEC.agents
OURS = [("marine", 16.0, 16.0), ("marauder", 18.0, 16.0), ("medivac", 14.0, 16.0)]
THEIRS = [("marine", 21.0, 16.0), ("medivac", 16.0, 20.0), ("marauder", 16.0, 30.0)]
STATE = a_state(RULES, OURS, THEIRS, army=[0, 0, 1])
VIEW = jax.jit(TASK.view)(STATE)


def feature(view, entity, name):
    return float(view.entities[entity, SPEC.features.index(name)])


def relation(view, agent, entity, name):
    return float(view.relations[agent, entity, SPEC.relations.index(name)])


def test_who_is_there():
    assert np.flatnonzero(VIEW.present).tolist() == [0, 1, 2, A, A + 1, A + 2]
    assert VIEW.subtask[A : A + 3].tolist() == [0, 0, 1]
    assert (VIEW.subtask[:A] == NOBODY).all()
    assert VIEW.active.tolist() == [True, True, False]
    assert not VIEW.entities[3].any()
    assert VIEW.visible[0, A + 2]
    near = a_state(Rules(units="mmm", sight=10.0), OURS, THEIRS, army=[0, 0, 1])
    assert not StarCraft(Rules(units="mmm", sight=10.0)).view(near).visible[0, A + 2]


def test_targets_are_foes_in_range_and_friends_of_healers():
    targets = VIEW.available[:, FIRST_TARGET:]
    assert np.flatnonzero(targets[0]).tolist() == [0, 1], "a Marine shoots whatever is within 6, flying or not"
    assert np.flatnonzero(targets[1]).tolist() == [0], "a Marauder cannot hurt a Medivac"
    assert np.flatnonzero(targets[2]).tolist() == [0, 1], "a Medivac heals friends, not itself"
    assert VIEW.target[0, FIRST_TARGET : FIRST_TARGET + 2].tolist() == [A, A + 1]
    assert VIEW.target[2, FIRST_TARGET : FIRST_TARGET + 2].tolist() == [0, 1]
    assert not VIEW.available[3:].any()


def test_under_an_allocation_only_ones_own_subtask_can_be_aimed_at():
    allocation = jnp.asarray([1, 0, 1] + [NOBODY] * (A - 3))
    available = available_under(VIEW, allocation)[:, FIRST_TARGET:]
    assert not available[0].any()
    assert np.flatnonzero(available[1]).tolist() == [0]
    assert np.flatnonzero(available[2]).tolist() == [0], "heals who is sent against the same army"


def test_moves_lead_onto_the_map():
    corner = a_state(RULES, [("marine", 0.5, 31.5)], THEIRS, army=[0, 0, 1])
    view = TASK.view(corner)
    assert view.available[0, :5].tolist() == [True, False, True, True, False]


def test_features():
    units = STATE.units
    hurt = replace(units, health=units.health.at[0].set(9.0), cooldown=units.cooldown.at[0].set(6.885))
    attacking, since = STATE.attacking.at[1].set(True), STATE.since_switch.at[1].set(5)
    state = replace(STATE, units=hurt, attacking=attacking, since_switch=since)
    view = TASK.view(state)
    assert feature(view, 0, "health") == pytest.approx(0.2)
    assert feature(view, 0, "cooldown") == pytest.approx(0.5, abs=1e-3)
    assert feature(view, 2, "energy") == pytest.approx(0.25)
    assert feature(view, 0, "our marine") == feature(view, A, "their marine") == 1
    assert feature(view, A + 2, "attacking") == 1
    assert feature(view, A + 2, "time since switch") == pytest.approx(0.25)
    assert feature(view, A, "attacking") == feature(view, 0, "attacking") == 0
    assert feature(view, 1, "x") == pytest.approx(2 / 32)
    assert feature(view, 1, "slot 1") == 1
    assert feature(view, 0, "can target 0") == 1
    middle = np.mean([(x, y) for _, x, y in OURS + THEIRS], axis=0)
    widest = max(np.hypot(x - middle[0], y - middle[1]) for _, x, y in OURS + THEIRS)
    assert feature(view, A + 2, "y from the middle of all") == pytest.approx((30 - middle[1]) / widest, abs=1e-5)


def test_relations():
    assert relation(VIEW, 0, A, "east") == pytest.approx(5 / 8)
    assert relation(VIEW, 0, A, "distance") == pytest.approx(5 / 8)
    assert relation(VIEW, 0, A, "towards east") == pytest.approx(1)
    # Two Marines 5 apart: within a range of 5 and both radii. A Marauder 14 away is not.
    assert relation(VIEW, 0, A, "inside my reach") == relation(VIEW, 0, A, "inside its reach") == 1
    assert relation(VIEW, 0, A + 2, "inside my reach") == relation(VIEW, 0, A + 2, "inside its reach") == 0
    assert relation(VIEW, 0, A, "can hurt") == 1
    assert relation(VIEW, 1, A + 1, "can hurt") == 0
    assert relation(VIEW, 2, 0, "can heal") == 1
    assert relation(VIEW, 2, A, "can heal") == relation(VIEW, 0, 1, "can heal") == 0
    assert relation(VIEW, 0, A, "hits to kill") == pytest.approx(8 / 20)
    assert relation(VIEW, 0, 3, "east") == 0, "the absent are nothing to anybody"


def test_relations_know_the_base():
    # The middle is at (16, 16); the base reaches 2 from there, and one of us stands in it.
    view = TASK.view(a_state(RULES, [("marine", 16.0, 16.0), ("marine", 19.0, 12.0)], THEIRS, army=[0, 0, 1]))
    for entity in (0, A + 2):
        assert relation(view, 1, entity, "base to the east") == pytest.approx(-3 / 8)
        assert relation(view, 1, entity, "base to the north") == pytest.approx(4 / 8)
        assert relation(view, 1, entity, "my way to the base") == pytest.approx(3 / 8)
    assert relation(view, 1, A + 2, "its way to the base") == pytest.approx(12 / 8)
    assert relation(view, 1, 0, "its way to the base") == pytest.approx(-2 / 8)
    assert relation(view, 1, A + 2, "nearer to the base than me") == 0
    assert relation(view, 1, 0, "nearer to the base than me") == 1


def test_the_dead_are_gone():
    dead = replace(STATE, units=replace(STATE.units, health=STATE.units.health.at[A].set(0)))
    view = TASK.view(dead)
    assert not view.present[A]
    assert not view.available[0, FIRST_TARGET]
    assert not view.relations[:, A].any()
