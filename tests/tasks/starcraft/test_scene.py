from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from helpers.battle import a_state

from alma.task.scene import Line
from alma.tasks.starcraft.rules import Rules
from alma.tasks.starcraft.scene import scene

RULES = Rules(units="mmm")
AGENTS = RULES.max_agents


@pytest.fixture(scope="module")
def state():
    """A Marine and a Medivac against two armies; the second is a Medivac alone, so that it counts as beaten."""
    ours = [("marine", 10, 12), ("medivac", 12, 12)]
    begun = a_state(RULES, ours, [("marauder", 14, 12), ("medivac", 3, 3)], army=[0, 1])
    return jax.device_get(replace(begun, attacking=jnp.asarray([True, False, False])))


def with_units(state, **changes):
    """The same with some of the units' numbers changed: name -> {unit: value}."""
    arrays = {name: getattr(state.units, name).copy() for name in changes}
    for name, values in changes.items():
        for unit, value in values.items():
            arrays[name][unit] = value
    return replace(state, units=replace(state.units, **arrays))


def test_units_are_where_they_should_be(state):
    things = scene(RULES, state).markers
    assert [thing and (thing.name, thing.at, thing.shape) for thing in things[:3]] == [
        ("marine", (10, 12), "disc"),
        ("medivac", (12, 12), "disc"),
        None,
    ]
    assert (things[AGENTS].name, things[AGENTS].shape) == ("enemy marauder", "square")
    assert len(things) == AGENTS + RULES.max_enemies


def test_bars_show_what_is_left(state):
    health = float(state.units.health[0])
    things = scene(RULES, with_units(state, health={0: health / 2})).markers
    assert things[0].bars == {"health": 0.5}
    assert set(things[1].bars) == {"health", "energy"}


def test_the_dead_are_gone(state):
    assert scene(RULES, with_units(state, health={0: 0})).markers[0] is None


def test_shots_and_heals_are_lines(state):
    assert scene(RULES, state).lines == ()
    period = RULES.table.period[RULES.types.index("marine")]
    busy = with_units(state, cooldown={0: period}, hit_target={0: AGENTS}, target={1: 0})
    assert scene(RULES, busy).lines == (Line(0, AGENTS, "attack"), Line(1, 0, "help"))


def test_armies_say_what_they_are_up_to(state):
    shown = scene(RULES, state)
    assert shown.standing == ("attacks", "beaten", "")
    base, *starts = shown.places
    assert (base.label, base.at, base.subtask) == ("base", (16, 16), None)
    assert [(place.label, place.subtask) for place in starts] == [("attacks", 0), ("beaten", 1), ("", 2)]
    assert starts[2].radius == 0, "there is no third army"


def test_an_army_in_the_base_is_told(state):
    inside = with_units(state, x={AGENTS: 16}, y={AGENTS: 16})
    assert scene(RULES, inside).standing[0] == "in the base"
