"""A picture of a battle: units by type and owner, their health and shields, shots, and who is sent against whom."""

import numpy as np
from PIL import Image

from alma.task import NOBODY, Allocation
from alma.tasks.canvas import FAINT, INK, Canvas, Point
from alma.tasks.starcraft.armies import State, judge
from alma.tasks.starcraft.rules import LOOPS_PER_STEP, Rules

SCALE = 17
"""Pixels along one cell."""
HEADER, FOOTER, MARGIN = 40, 62, 14

# Colours that people with any kind of colour vision can tell apart; armies are numbered too.
ARMY_COLOURS = ("#d55e00", "#cc79a7", "#b8860b", "#7a5195", "#8c564b")
OURS, UNASSIGNED = "#0072b2", "#5f6b73"
GROUND, BASE, HEALTH, SHIELD, SHOT, HEAL = "#f1ede3", "#c9d8c4", "#3d9a50", "#56b4e9", "#e8401c", "#00a06b"


def draw(rules: Rules, state: State, allocation: Allocation, caption: str = "") -> Image.Image:
    """Draw one state; `caption` goes on top."""
    canvas = BattleCanvas(rules)
    canvas.background(caption or f"step {int(state.time)}")
    _draw_armies(canvas, rules, state)
    alive = np.flatnonzero(np.asarray(state.units.health) > 0).tolist()
    for unit in alive:
        if unit < state.agents and (army := int(allocation[unit])) != NOBODY:
            _draw_link(canvas, state, unit, army)
    for unit in alive:
        _draw_shot(canvas, rules, state, unit)
    for unit in alive:
        _draw_unit(canvas, rules, state, unit, allocation)
    return canvas.finish()


class BattleCanvas(Canvas):
    """A map to draw on, in cells; north is up."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        side = rules.map_size * SCALE
        super().__init__(side + 2 * MARGIN, side + 2 * MARGIN + HEADER + FOOTER)

    def at(self, place: Point) -> Point:
        return MARGIN + place[0] * SCALE, HEADER + MARGIN + (self.rules.map_size - place[1]) * SCALE

    def background(self, caption: str) -> None:
        left, bottom = self.at((0, 0))
        right, top = self.at((self.rules.map_size, self.rules.map_size))
        self.pen.rectangle([2 * v for v in (left, top, right, bottom)], fill=GROUND)
        middle = self.at((self.rules.map_size / 2, self.rules.map_size / 2))
        self.disc(middle, self.rules.base_radius * SCALE, BASE)
        self.text(middle, "base", 12, FAINT, "mm")
        self.text((MARGIN, HEADER / 2 + 4), caption, 17, INK)
        rows = (
            ((0, OURS, "ours, round"), (120, ARMY_COLOURS[0], "theirs, square"), (310, UNASSIGNED, "sent nowhere")),
            ((0, HEALTH, "health"), (120, SHIELD, "shield"), (220, SHOT, "shot"), (310, HEAL, "heal")),
        )  # fmt: skip
        for row, entries in enumerate(rows):
            for x, colour, meaning in entries:
                self.swatch(MARGIN + 4 + x, self.size[1] - FOOTER + 16 + 26 * row, colour, meaning)


def _place(state: State, unit: int) -> Point:
    x, y = np.asarray(state.units.position)[unit]
    return float(x), float(y)


def _draw_armies(canvas: BattleCanvas, rules: Rules, state: State) -> None:
    """Where armies come from, and what they are up to."""
    beaten = judge(rules, state).beaten
    for army in np.flatnonzero(np.asarray(state.exists)).tolist():
        x, y = np.asarray(state.start)[army]
        where, colour = canvas.at((float(x), float(y))), ARMY_COLOURS[army % len(ARMY_COLOURS)]
        canvas.ring(where, 1.2 * SCALE, colour + "80")
        mood = "beaten" if beaten[army] else "attacks" if state.attacking[army] else "retreats"
        canvas.text((where[0], where[1] - 1.7 * SCALE), f"{army} {mood}", 13, colour, "mm")


def _draw_link(canvas: BattleCanvas, state: State, unit: int, army: int) -> None:
    """From an agent to the middle of the army it was sent against."""
    alive = np.asarray(state.units.health)[state.agents :] > 0
    members = np.flatnonzero((np.asarray(state.army) == army) & alive)
    if not len(members):
        return
    x, y = np.asarray(state.units.position)[state.agents + members].mean(axis=0)
    colour = ARMY_COLOURS[army % len(ARMY_COLOURS)]
    canvas.line(canvas.at(_place(state, unit)), canvas.at((float(x), float(y))), colour + "50", 3)


def _draw_shot(canvas: BattleCanvas, rules: Rules, state: State, unit: int) -> None:
    """What a unit has shot at, or healed, in the last step."""
    units, kind = state.units, int(state.units.kind[unit])
    fired = rules.table.fights[kind] and float(units.cooldown[unit]) > rules.table.period[kind] - LOOPS_PER_STEP
    target = int(units.hit_target[unit]) if fired else int(units.target[unit])
    heals = rules.table.heals[kind] > 0 and target >= 0
    if (fired and target >= 0) or heals:
        ends = canvas.at(_place(state, unit)), canvas.at(_place(state, target))
        canvas.line(*ends, (HEAL if heals else SHOT) + "c0", 2)


def _draw_unit(canvas: BattleCanvas, rules: Rules, state: State, unit: int, allocation: Allocation) -> None:
    units, kind = state.units, int(state.units.kind[unit])
    x, y = canvas.at(_place(state, unit))
    radius = max(float(rules.table.radius[kind]) * SCALE, 8)
    letter = LETTERS.get(rules.types[kind], rules.types[kind][0].upper())
    if unit < state.agents:
        sent = int(allocation[unit]) != NOBODY
        canvas.disc((x, y), radius, OURS if sent else UNASSIGNED, letter, 11)
    else:
        army = int(state.army[unit - state.agents])
        box = [2 * v for v in (x - radius, y - radius, x + radius, y + radius)]
        canvas.pen.rectangle(box, fill=ARMY_COLOURS[army % len(ARMY_COLOURS)], outline="white", width=3)
        canvas.text((x, y), letter, 11, "white", "mm")
    bars = [(float(units.health[unit] / rules.table.health[kind]), HEALTH)]
    if rules.table.shield[kind]:
        bars.append((float(units.shield[unit] / rules.table.shield[kind]), SHIELD))
    for row, (share, colour) in enumerate(bars):
        canvas.bar((x - 11, y - radius - 5 - 4 * row), 22, 3, share, colour)


LETTERS = {"marauder": "R", "medivac": "+", "stalker": "S", "zealot": "Z"}
"""What stands for a type, where its first letter would not do."""
