"""The planner's game: one step of it is one step of the real one, and small cities get the right verdict."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planner import City, Where, undominated

from alma.tasks.save_the_city import Action, Rules, SaveTheCity
from alma.tasks.save_the_city.rules import AgentType, BuildingType
from alma.tasks.save_the_city.scenarios import Agent, Building, place

RULES = Rules(agents=2)
SITES = ((1, 1), (7, 7), (13, 13))
FIREFIGHTER, BUILDER, GENERALIST = AgentType
TEAMS = list(itertools.combinations(AgentType, 2))


def city(team, buildings, beside=(0, 0)):
    """Agents on two sides of buildings, by their numbers."""
    sides = ((1, 0), (-1, 0))
    cells = [tuple(np.add(SITES[number], side).tolist()) for number, side in zip(beside, sides, strict=True)]
    state = place(RULES, [Agent(kind, cell) for kind, cell in zip(team, cells, strict=True)], buildings)
    return state, City.of(RULES, jax.device_get(state))


@pytest.mark.parametrize("beside", [(0, 0), (0, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("freezes", [False, True])
@pytest.mark.parametrize("team", TEAMS)
def test_a_step_is_one_of_the_real_game(team, freezes, beside):
    buildings = [
        Building(SITES[0], BuildingType.FAST, health=0.5, fire=0.6),
        Building(SITES[1], BuildingType.SLOW, health=0.95),
        Building(SITES[2], BuildingType.SLOW, health=0.4, fire=0.2, interval=1),  # breaks out again at once
    ]
    state, game = city(team, buildings, beside)
    burns = [buildings[number].fire > 0 for number in beside]
    does = [
        Action.BUILD if not fire else Action.FREEZE if kind == GENERALIST and freezes else Action.FIGHT
        for kind, fire in zip(team, burns, strict=True)
    ]
    after, _ = SaveTheCity(RULES).step(jax.random.key(0), state, jnp.asarray(does))
    then = game.step(0, tuple(Where(number, 0) for number in beside), game.start, freezes)[0]
    complete = np.asarray(after.complete)
    np.testing.assert_allclose(then[0], np.where(complete, 0, after.fire), atol=1e-6)
    np.testing.assert_allclose(then[1], np.where(complete, 0, 1 - after.health), atol=1e-6)


def test_what_can_be_saved_and_what_cannot():
    def verdict(team, *fires):
        buildings = [Building(site, health=0.3, fire=fire) for site, fire in zip(SITES, fires, strict=True)]
        return city(team, buildings, beside=(0, 1))[1].verdict(1000)

    assert verdict((FIREFIGHTER, BUILDER), 0, 0, 0) == "can be saved"
    assert verdict((FIREFIGHTER, BUILDER), 1, 0, 0) == "can be saved"
    # Ten steps away, and burned down after nine.
    assert verdict((FIREFIGHTER, BUILDER), 0, 0, 1) == "cannot be saved"
    # A generalist is twice as fast and can wait for the firefighter.
    assert verdict((FIREFIGHTER, GENERALIST), 0, 0, 1) == "can be saved"


def test_courses_that_come_too_late_are_dropped():
    """The second building, ten steps away, burns: of health 0.3 it lasts eight steps, of 0.4 eleven."""
    for health, in_time in ((0.3, False), (0.4, True)):
        buildings = [Building(site, health=health, fire=fire) for site, fire in zip(SITES, (0, 1, 0), strict=True)]
        game = city((FIREFIGHTER, BUILDER), buildings)[1]
        both_at_first = (Where(0, 0), Where(0, 0))
        assert game.in_time(both_at_first, game.start).tolist() == [in_time]
        assert game.in_time((Where(0, 0), Where(1, 8)), game.start).tolist() == [True]
        assert game.in_time((Where(0, 0), Where(1, 0)), game.start).tolist() == [True]


def test_a_search_that_is_cut_short_knows_nothing():
    buildings = [Building(site, health=0.6, fire=1.0, type=BuildingType.SLOW) for site in SITES]
    game = city((BUILDER, GENERALIST), buildings)[1]
    assert game.search(1) == "not known"


def test_undominated_rows_are_those_with_an_edge():
    rows = np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]])
    assert sorted(undominated(rows).tolist()) == [[1, 2], [2, 1]]
