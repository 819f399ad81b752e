import re
from collections import Counter
from functools import partial

import jax
import numpy as np
import pytest
from helpers.city import BUILDER, FIREFIGHTER, RULES

from alma.tasks.save_the_city.rules import ABSENT, Rules
from alma.tasks.save_the_city.scenarios import Agent, Building, draw_scenario, place, sites, start_cells, teams

DRAWS = 20_000


def draw(rules, count, seed=0):
    keys = jax.random.split(jax.random.key(seed), count)
    return jax.device_get(jax.jit(jax.vmap(partial(draw_scenario, rules)))(keys))


@pytest.fixture(scope="module")
def drawn():
    return draw(RULES, DRAWS)


def assert_share(mask, share):
    """Within four standard errors."""
    assert abs(np.mean(mask) - share) < 4 * np.sqrt(share * (1 - share) / np.size(mask))


def test_the_thirteen_teams():
    sizes = Counter((teams(RULES) != ABSENT).sum(axis=1).tolist())
    assert sizes == {2: 3, 3: 1, 4: 3, 5: 6}
    assert len({tuple(team) for team in teams(RULES).tolist()}) == 13
    assert all(
        len(set(team) - {ABSENT}) == min(3, sum(kind != ABSENT for kind in team)) for team in teams(RULES).tolist()
    )


def test_teams_are_drawn_uniformly(drawn):
    counts = Counter(map(tuple, drawn.agent_type.tolist()))
    assert set(counts) == {tuple(team) for team in teams(RULES).tolist()}
    for team in counts:
        assert_share((drawn.agent_type == team).all(axis=1), 1 / 13)


def test_one_building_more_than_agents(drawn):
    agents, buildings = (drawn.agent_type != ABSENT).sum(axis=1), (drawn.building_type != ABSENT).sum(axis=1)
    assert (buildings == agents + 1).all()


def test_agents_start_in_the_smallest_square_that_holds_them(drawn):
    for size, low, high in ((2, 7, 8), (3, 7, 8), (4, 6, 9), (5, 6, 9)):
        rows = (drawn.agent_type != ABSENT).sum(axis=1) == size
        cells = drawn.agent_position[rows][:, :size].reshape(-1, 2)
        assert ((cells >= low) & (cells <= high)).all()
        possible = {(x, y) for x in range(low, high + 1) for y in range(low, high + 1)} - {(7, 7)}
        assert set(map(tuple, cells.tolist())) == possible
        for cell in possible:
            assert_share((cells == cell).all(axis=1), 1 / len(possible))


@pytest.mark.parametrize(("size", "cells"), [(3, 3), (15, 15), (16, 32), (24, 32)])
def test_start_squares_of_other_sizes(size, cells):
    assert start_cells(Rules(agents=size))[1][size].sum() == cells


def test_buildings_take_distinct_sites_uniformly(drawn):
    grid = {(x, y) for x in (1, 4, 7, 10, 13) for y in (1, 4, 7, 10, 13)}
    assert set(map(tuple, sites(RULES).tolist())) == grid
    present = drawn.building_type != ABSENT
    for cells, here in zip(drawn.building_position[:200].tolist(), present[:200], strict=True):
        taken = [tuple(cell) for cell, yes in zip(cells, here, strict=True) if yes]
        assert len(set(taken)) == len(taken)
    for cell in grid:
        assert_share((drawn.building_position[present] == cell).all(axis=1), 1 / 25)


def test_buildings_follow_their_distributions(drawn):
    present = drawn.building_type != ABSENT
    slow = drawn.building_type[present] == 1
    health, interval = drawn.health[present], drawn.fire_interval[present]
    assert_share(slow, 0.5)
    assert_share(health < 0.5, 0.5)
    assert_share(drawn.fire[present] == 1, 0.4)
    assert set(np.unique(drawn.fire)) == {0, 1}
    assert (((health >= 0.25) & (health <= 0.4)) | ((health >= 0.6) & (health <= 0.75))).all()
    assert_share(health[health < 0.5] < 0.325, 0.5)
    assert set(interval[slow]) == set(range(10, 31))
    assert set(interval[~slow]) == set(range(60, 81))
    assert_share(interval[slow] == 30, 1 / 21)
    assert (drawn.fire_timer == drawn.fire_interval).all()


def test_unused_slots_are_zero(drawn):
    agents, buildings = drawn.agent_type == ABSENT, drawn.building_type == ABSENT
    assert not drawn.agent_position[agents].any()
    for field in (drawn.building_position, drawn.health, drawn.fire, drawn.fire_interval, drawn.fire_timer):
        assert not field[buildings].any()


def test_the_largest_city_uses_every_site():
    state = draw(Rules(agents=24), 50)
    for positions in (state.agent_position, state.building_position):
        codes = positions[..., 0].astype(int) * 16 + positions[..., 1]
        assert all(len(set(row)) == codes.shape[1] for row in codes.tolist())


def test_a_state_takes_little_room():
    state = place(RULES, [Agent(BUILDER, (0, 0))], [Building((1, 1))])
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == 107


@pytest.mark.parametrize(
    ("agents", "buildings", "message"),
    [
        ([], [Building((1, 1))], "room for 1 to 5 agents"),
        ([Agent(BUILDER, (1, 1))], [Building((1, 1))], "share a cell"),
        ([Agent(BUILDER, (16, 1))], [Building((1, 1))], "between 0 and 15"),
        ([Agent(FIREFIGHTER, (0, 0))], [Building((2, 1))], "one of (1, 4, 7, 10, 13)"),
        ([Agent(FIREFIGHTER, (0, 0))], [Building((1, 1), health=1.7)], "between 0 and 1"),
        ([Agent(FIREFIGHTER, (0, 0))], [Building((1, 1), timer=0)], "between 1 and the interval"),
    ],
)
def test_impossible_situations_are_refused(agents, buildings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        place(RULES, agents, buildings)
