from functools import partial

import jax
import jax.numpy as jnp
import pytest
from helpers.city import BUILDER, FIREFIGHTER, GENERALIST, RULES, SLOW, city

from alma import NOBODY
from alma.tasks.save_the_city.heuristics import most_urgent, nearest_useful, scripted_actions
from alma.tasks.save_the_city.rules import Action
from alma.tasks.save_the_city.scenarios import Building

BURNING_NEAR, BURNING_FAR = Building((7, 7), fire=1.0), Building((13, 13), fire=1.0)
CALM_NEAR, CALM_FAR = Building((7, 10)), Building((1, 1))

_scripted = jax.jit(partial(scripted_actions, RULES, stumble=0.0))


def script(state, *allocation):
    padded = jnp.asarray([*allocation, *[NOBODY] * (RULES.max_agents - len(allocation))])
    return [Action(action) for action in _scripted(jax.random.key(0), state, padded).tolist()][: len(allocation)]


class TestNearestUseful:
    @pytest.mark.parametrize(("kind", "choice"), [(FIREFIGHTER, 1), (GENERALIST, 1), (BUILDER, 2)])
    def test_everybody_has_a_preference(self, kind, choice):
        state = city([(kind, (8, 8))], BURNING_FAR, BURNING_NEAR, CALM_NEAR, CALM_FAR)
        assert nearest_useful(state)[0] == choice

    @pytest.mark.parametrize(("kind", "building"), [(FIREFIGHTER, CALM_NEAR), (BUILDER, BURNING_NEAR)])
    def test_without_the_preferred_kind_the_nearest_will_do(self, kind, building):
        far = building._replace(position=(1, 1))
        assert nearest_useful(city([(kind, (8, 8))], far, building))[0] == 1

    def test_finished_buildings_do_not_count(self):
        state = city([(BUILDER, (8, 8))], CALM_NEAR._replace(health=1.0), CALM_FAR)
        assert nearest_useful(state)[0] == 1

    def test_the_absent_go_nowhere(self):
        allocation = nearest_useful(city([(BUILDER, (8, 8))], CALM_NEAR))
        assert allocation.tolist() == [0, NOBODY, NOBODY, NOBODY, NOBODY]

    def test_nobody_is_needed_in_a_finished_city(self):
        assert nearest_useful(city([(BUILDER, (8, 8))], CALM_NEAR._replace(health=1.0)))[0] == NOBODY


class TestMostUrgent:
    CREW = ((BUILDER, (8, 8)), (FIREFIGHTER, (0, 0)))

    def test_fires_come_first_by_the_time_they_need(self):
        fast, slow = Building((7, 7), health=0.5, fire=1.0), Building((4, 4), SLOW, health=0.4, fire=1.0)
        state = city(list(self.CREW), Building((1, 1), health=0.2), slow, fast)
        assert most_urgent(RULES, state).tolist() == [2, 2, NOBODY, NOBODY, NOBODY]

    def test_without_fires_what_is_nearly_done_comes_first(self):
        state = city(list(self.CREW), Building((1, 1), health=0.7), Building((7, 7)), Building((4, 4), health=1.0))
        assert most_urgent(RULES, state).tolist()[:2] == [0, 0]


class TestScripted:
    def test_walks_the_longer_way_first(self):
        state = city([(FIREFIGHTER, (2, 5))], Building((7, 7)))
        assert script(state, 0) == [Action.EAST]

    def test_generalists_stride(self):
        assert script(city([(GENERALIST, (2, 7))], Building((7, 7))), 0) == [Action.FAR_EAST]

    def test_goes_to_a_cell_that_is_free(self):
        state = city([(FIREFIGHTER, (5, 8)), (BUILDER, (6, 7))], Building((7, 7)))
        assert script(state, 0, 0)[0] == Action.EAST  # north of the building, not west of it

    @pytest.mark.parametrize(
        ("kind", "fire", "work"),
        [
            (FIREFIGHTER, 1.0, Action.FIGHT),
            (BUILDER, 1.0, Action.FIGHT),
            (GENERALIST, 1.0, Action.FREEZE),
            (FIREFIGHTER, 0.0, Action.BUILD),
            (BUILDER, 0.0, Action.BUILD),
            (GENERALIST, 0.0, Action.BUILD),
        ],
    )
    def test_works_alone(self, kind, fire, work):
        assert script(city([(kind, (6, 7))], Building((7, 7), fire=fire)), 0) == [work]

    @pytest.mark.parametrize(
        ("others", "work"),
        [([BUILDER], Action.FIGHT), ([FIREFIGHTER], Action.FREEZE), ([BUILDER, FIREFIGHTER], Action.FREEZE)],
    )
    def test_a_generalist_looks_who_else_is_there(self, others, work):
        crew = [(GENERALIST, (6, 7)), *zip(others, [(8, 7), (7, 8)], strict=False)]
        assert script(city(crew, Building((7, 7), fire=1.0)), *[0] * len(crew))[0] == work

    @pytest.mark.parametrize("waiting", [(12, 7), (7, 12), (2, 7)])
    def test_waits_where_every_cell_is_taken(self, waiting):
        ring = [(BUILDER, cell) for cell in ((6, 7), (8, 7), (7, 6), (7, 8))]
        assert script(city([*ring, (FIREFIGHTER, waiting)], Building((7, 7))), 0, 0, 0, 0, 0)[4] == Action.STAY

    def test_passes_another_building_by(self):
        state = city([(BUILDER, (6, 7))], Building((7, 7)), Building((1, 7)))
        assert script(state, 1) == [Action.WEST]

    def test_idles_without_a_subtask(self):
        assert script(city([(BUILDER, (6, 7))], Building((7, 7))), NOBODY) == [Action.STAY]

    def test_stumbles_now_and_then(self):
        state = city([(FIREFIGHTER, (3, 7))], Building((7, 7)))
        act = jax.jit(jax.vmap(lambda key: scripted_actions(RULES, key, state, jnp.zeros(5, jnp.int32))))
        actions = act(jax.random.split(jax.random.key(0), 20_000))[:, 0]
        share = float(jnp.mean(actions != Action.EAST))
        assert abs(share - 0.05 * 4 / 5) < 0.006  # one of five random moves is the right one; four standard errors

    def test_stumbles_only_while_walking(self):
        state = city([(BUILDER, (6, 7)), (FIREFIGHTER, (3, 3))], Building((7, 7)))
        act = jax.jit(jax.vmap(lambda key: scripted_actions(RULES, key, state, jnp.zeros(5, jnp.int32), stumble=0.5)))
        actions = act(jax.random.split(jax.random.key(0), 500))
        assert set(actions[:, 0].tolist()) == {Action.BUILD}
        assert set(actions[:, 1].tolist()) == {Action.STAY, Action.NORTH, Action.EAST, Action.SOUTH, Action.WEST}
