import numpy as np
from city import BUILDER, FIREFIGHTER, GENERALIST, RULES, city

from alma import NOBODY
from alma.tasks.canvas import PAPER
from alma.tasks.save_the_city import drawing
from alma.tasks.save_the_city.scenarios import Building

STATE = city(
    [(FIREFIGHTER, (3, 3)), (BUILDER, (6, 10)), (GENERALIST, (10, 11))],
    Building((7, 7), fire=0.8),
    Building((1, 1), health=1.0),
    Building((13, 13), health=0.0),
)
NOWHERE = np.full(RULES.max_agents, NOBODY)


def colour_at(picture, cell):
    x = drawing.MARGIN + (cell[0] + 0.5) * drawing.CELL
    y = drawing.HEADER + drawing.MARGIN + (RULES.grid_size - 0.5 - cell[1]) * drawing.CELL
    return picture.getpixel((round(x), round(y)))


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def test_things_are_where_they_should_be():
    picture = drawing.draw(RULES, STATE, NOWHERE)
    beside_letter = 0.3
    for cell, kind in (((3, 3), FIREFIGHTER), ((6, 10), BUILDER), ((10, 11), GENERALIST)):
        assert colour_at(picture, (cell[0] - beside_letter, cell[1])) == rgb(drawing.AGENT_COLOURS[kind])
    assert colour_at(picture, (1 - 0.38, 1)) == rgb(drawing.COMPLETE)
    assert colour_at(picture, (13 - 0.38, 13)) == rgb(drawing.BURNED)
    assert colour_at(picture, (4.4, 12.3)) == rgb(PAPER)


def test_a_line_shows_the_allocation():
    def midway(allocation):
        return colour_at(drawing.draw(RULES, STATE, allocation), (5, 5))

    assert midway(np.array([0, *NOWHERE[1:]])) != midway(NOWHERE)


def test_the_health_bar_and_the_clock_show_how_much_is_left():
    def count(colour, **building):
        state = city([(FIREFIGHTER, (3, 3))], Building((7, 7), **building))
        pixels = np.asarray(drawing.draw(RULES, state, NOWHERE), int)
        return (np.abs(pixels - rgb(colour)).max(axis=-1) < 40).sum()

    assert count(drawing.HEALTH, health=0.9) > count(drawing.HEALTH, health=0.3)
    assert count(drawing.TIMER, timer=70) > count(drawing.TIMER, timer=10)


def test_a_stronger_fire_is_a_larger_flame():
    def red(fire):
        state = city([(FIREFIGHTER, (3, 3))], Building((7, 7), fire=fire))
        picture = drawing.draw(RULES, state, NOWHERE)
        near_flame = np.abs(np.asarray(picture, int) - rgb(drawing.FLAME)).max(axis=-1) < 40
        return near_flame.sum()

    assert red(1.0) > red(0.3) > red(0.0)
