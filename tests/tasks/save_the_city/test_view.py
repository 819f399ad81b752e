from functools import partial

import jax
import numpy as np
import pytest
from helpers.city import BUILDER, FIREFIGHTER, GENERALIST, RULES, SLOW, city

from alma import NOBODY
from alma.task.view import select_features
from alma.tasks.save_the_city import SaveTheCity
from alma.tasks.save_the_city.rules import Action
from alma.tasks.save_the_city.scenarios import Building
from alma.tasks.save_the_city.view import RELATIONS, feature_names, view

NAMES = feature_names(RULES)
AGENTS = RULES.max_agents


@pytest.fixture(scope="module")
def seen():
    state = city(
        [(FIREFIGHTER, (6, 7)), (BUILDER, (0, 15)), (GENERALIST, (2, 4))],
        Building((7, 7), SLOW, 0.6, fire=0.5, interval=20, timer=5),
        Building((13, 1), health=1.0, interval=80, timer=20),
        Building((1, 1), health=0.0, interval=80, timer=20),
    )
    return jax.device_get(jax.jit(partial(view, RULES))(state))


def features(seen, entity):
    """The features that are not zero, by name."""
    return {name: float(value) for name, value in zip(NAMES, seen.entities[entity], strict=True) if value}


def relations(seen, agent, entity):
    row = zip(RELATIONS, seen.relations[agent, entity], strict=True)
    return {name: float(value) for name, value in row if value}


def test_there_are_58_features():
    assert len(NAMES) == len(set(NAMES)) == 58


def test_an_agent(seen):
    assert features(seen, 0) == pytest.approx(
        {
            "firefighter": 1,
            "x = 6": 1,
            "y = 7": 1,
            "x": 6 / 16,
            "y": 7 / 16,
            "can stay": 1,
            "can north": 1,
            "can south": 1,
            "can west": 1,
            "can fight": 1,
        }
    )


def test_a_building(seen):
    assert features(seen, AGENTS) == pytest.approx(
        {
            "slow building": 1,
            "x = 7": 1,
            "y = 7": 1,
            "x": 7 / 16,
            "y": 7 / 16,
            "health": 0.6,
            "fire": 0.5,
            "on fire": 1,
            "time since last fire": 15 / 20,
            "fire frequency": (1 / 20 - 1 / 80) / (1 / 10 - 1 / 80),
        }
    )


def test_a_complete_building(seen):
    shown = features(seen, AGENTS + 1)
    assert shown["complete"] == 1
    assert "burned down" not in shown
    assert "fire frequency" not in shown  # the longest interval of all


@pytest.mark.parametrize("building", [1, 2], ids=["complete", "burned down"])
def test_a_finished_building_has_no_time_since_its_last_fire(seen, building):
    assert "time since last fire" not in features(seen, AGENTS + building)


def test_masks(seen):
    assert np.flatnonzero(seen.present).tolist() == [0, 1, 2, *range(AGENTS, AGENTS + 3)]
    assert np.flatnonzero(seen.active).tolist() == [0]
    assert seen.subtask.tolist() == [NOBODY] * AGENTS + [0, 1, 2] + [NOBODY] * 3
    assert not seen.entities[~seen.present].any()
    assert (seen.visible == (seen.present[:AGENTS, None] & seen.present)).all()


def test_work_is_aimed_at_the_building_beside(seen):
    assert seen.target[0, Action.FIGHT] == AGENTS
    assert np.count_nonzero(seen.target >= 0) == 1


def test_relations_of_a_neighbour(seen):
    assert relations(seen, 0, AGENTS) == pytest.approx(
        {"east": 1 / 16, "distance": 1 / 32, "adjacent": 1, "east +1": 1, "north +0": 1}
    )


def test_relations_far_away_are_clipped(seen):
    assert relations(seen, 1, AGENTS + 1) == pytest.approx(
        {
            "east": 13 / 16,
            "north": -14 / 16,
            "distance": 27 / 32,
            "steps to reach": 26 / 16,
            "east +3": 1,
            "north -3": 1,
        }
    )


def test_generalists_reach_in_half_the_steps(seen):
    # From (2, 4) to (7, 7): 8 cells, 7 to stand beside, 4 steps of two.
    assert relations(seen, 2, AGENTS)["steps to reach"] == pytest.approx(4 / 16)


def test_relations_of_the_absent_are_zero(seen):
    assert not seen.relations[3:].any()
    assert not seen.relations[:, ~seen.present].any()


def test_without_places_a_city_looks_the_same_wherever_it_is():
    spec = SaveTheCity(RULES).spec
    here, there = (
        select_features(
            view(RULES, city([(FIREFIGHTER, (x, 7)), (GENERALIST, (x + 1, 5))], Building((x + 1, 7)))),
            spec.features_seen(places=False),
        )
        for x in (3, 9)
    )
    assert len(spec.places) == 34
    for part in ("entities", "relations", "available"):
        np.testing.assert_array_equal(getattr(here, part), getattr(there, part), err_msg=part)
    whole = select_features(
        view(RULES, city([(FIREFIGHTER, (3, 7))], Building((4, 7)))), spec.features_seen(places=True)
    )
    assert whole.entities.shape[1] == len(NAMES)
