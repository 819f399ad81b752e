from helpers.city import BUILDER, FIREFIGHTER, GENERALIST, RULES, SLOW, city

from alma.tasks.save_the_city.scenarios import Building
from alma.tasks.save_the_city.scene import scene

SCENE = scene(
    RULES,
    city(
        [(FIREFIGHTER, (3, 3)), (BUILDER, (6, 10)), (GENERALIST, (10, 11))],
        Building((7, 7), type=SLOW, health=0.5, fire=0.8),
        Building((1, 1), health=1.0),
        Building((13, 13), health=0.0),
        Building((13, 1), health=0.5, fire=0.0),
    ),
)


def test_things_are_where_they_should_be():
    agents = SCENE.markers[: RULES.max_agents]
    assert [(thing.name, thing.at) for thing in agents if thing] == [
        ("firefighter", (3.5, 3.5)),
        ("builder", (6.5, 10.5)),
        ("generalist", (10.5, 11.5)),
    ]
    assert len({thing.shape for thing in agents if thing}) == 3, "types are told apart by shape too"
    assert SCENE.markers[RULES.max_agents].at == (7.5, 7.5)


def test_there_is_a_thing_for_every_entity():
    assert len(SCENE.markers) == RULES.max_agents + RULES.max_buildings
    assert SCENE.markers[3] is None
    assert SCENE.markers[-1] is None


def test_buildings_show_how_they_are():
    assert SCENE.standing[:4] == ("on fire", "complete", "burned down", "unfinished")
    burning, complete, burned, quiet = SCENE.markers[RULES.max_agents : RULES.max_agents + 4]
    assert burning.bars["health"] == 0.5
    assert 0.79 < burning.icons["flame"] < 0.81
    assert burning.status == "on fire, burns slowly, often"
    assert (complete.icons["tick"], complete.icons["cross"], complete.icons["clock"]) == (1, 0, 0)
    assert (burned.icons["tick"], burned.icons["cross"]) == (0, 1)
    assert quiet.icons["flame"] == 0
    assert 0 < quiet.icons["clock"] <= 1
