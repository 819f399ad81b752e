"""What units are made of: the data of the game's base set, in "normal" time (16 game loops a second)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

LOOPS_PER_SECOND = 16


@dataclass(frozen=True)
class Unit:
    """One type of unit. Times are in seconds, lengths in cells."""

    health: float
    radius: float
    separation: float
    """How close another unit's centre may come, added to the other's own."""
    speed: float
    shield: float = 0
    armour: float = 0
    light: bool = False
    armored: bool = False
    biological: bool = False
    flying: bool = False
    acceleration: float = 0
    """Speed gained in a second; 0: at full speed at once."""
    damage: float = 0
    """Of one hit; 0: has no weapon."""
    versus_light: float = 0
    """More damage to light units."""
    versus_armored: float = 0
    period: float = 1
    """Between shots."""
    second_hit: float = 0
    """A shot hits a second time so many loops later; 0: it does not."""
    range: float = 0
    hits_air: bool = False
    bolt_speed: float = 0
    """Of what it shoots; 0: it hits at once."""
    heals: float = 0
    """Health given in a second; 0: it does not heal."""

    @property
    def fights(self) -> bool:
        return self.damage > 0


UNITS = {
    "marine": Unit(
        health=45, radius=0.375, separation=0.375, speed=2.25, light=True, biological=True,
        damage=6, period=0.8608, range=5, hits_air=True,
    ),
    "marauder": Unit(
        health=125, armour=1, radius=0.5625, separation=0.5, speed=2.25, armored=True, biological=True,
        damage=10, versus_armored=10, period=1.5, range=6, bolt_speed=20,
    ),
    "medivac": Unit(
        health=150, armour=1, radius=0.75, separation=0.75, speed=2.75, acceleration=2.3125, armored=True, flying=True,
        range=4, heals=9,
    ),
    "stalker": Unit(
        health=80, shield=80, armour=1, radius=0.625, separation=0.625, speed=2.9531, armored=True,
        damage=10, versus_armored=4, period=1.44, range=6, hits_air=True, bolt_speed=18.75,
    ),
    "zealot": Unit(
        health=100, shield=50, armour=1, radius=0.5, separation=0.375, speed=2.25, light=True, biological=True,
        damage=8, period=1.2, second_hit=4.5, range=0.1,
    ),
    "colossus": Unit(
        health=200, shield=150, armour=1, radius=1, separation=0.75, speed=2.25, armored=True,
        damage=20, period=2.2, second_hit=1, range=6,
    ),
    "zergling": Unit(
        health=35, radius=0.375, separation=0.375, speed=2.9531, light=True, biological=True,
        damage=5, period=0.696, range=0.1,
    ),
    "hydralisk": Unit(
        health=80, radius=0.625, separation=0.625, speed=2.25, light=True, biological=True,
        damage=12, period=0.83, range=5, hits_air=True,
    ),
}  # fmt: skip
"""Every type there is. Colossi hit one target, with their second beam a loop after the first."""

SHIELD_PER_LOOP = 2 / LOOPS_PER_SECOND
SHIELD_DELAY = 10 * LOOPS_PER_SECOND
"""Loops without damage before shields come back."""
ENERGY_START, ENERGY_MAX, ENERGY_PER_LOOP, ENERGY_PER_HEALTH = 50.0, 200.0, 0.5625 / LOOPS_PER_SECOND, 0.33
JITTER = (-1.0, 2.0)
"""Loops by which the time to the next shot varies."""
LEAST_DAMAGE = 0.5
"""Armour never takes more off a hit than leaves this."""


class Table(NamedTuple):
    """The types of a game as arrays: a row for each type, in the order they were named."""

    health: np.ndarray
    shield: np.ndarray
    armour: np.ndarray
    radius: np.ndarray
    separation: np.ndarray
    step: np.ndarray
    """Cells in a loop at full speed."""
    acceleration: np.ndarray
    """Cells a loop gained in a loop; as much as `step` where full speed is reached at once."""
    period: np.ndarray
    """Loops between shots."""
    second_hit: np.ndarray
    """Loops to the second hit; 0: there is none."""
    range: np.ndarray
    bolt_step: np.ndarray
    """Cells a bolt flies in a loop; 0: hits at once."""
    heals: np.ndarray
    """Health given in a loop."""
    fights: np.ndarray
    flying: np.ndarray
    damage: np.ndarray
    """Of a hit, by attacker and target type, before armour; 0 where it cannot hit."""
    healable: np.ndarray
    """Whether the first type heals the second."""
    reach: np.ndarray
    """Distance of centres within which the first type hits, or heals, the second."""


@lru_cache
def make_table(names: tuple[str, ...]) -> Table:
    """The data of some types."""
    units = [UNITS[name] for name in names]

    def column(value: str, scale: float = 1) -> np.ndarray:
        return np.array([getattr(unit, value) * scale for unit in units], np.float32)

    step = column("speed", 1 / LOOPS_PER_SECOND)
    gained = column("acceleration", 1 / LOOPS_PER_SECOND**2)
    heals, radius = column("heals", 1 / LOOPS_PER_SECOND), column("radius")
    healed = np.array([unit.biological and not unit.flying for unit in units])
    return Table(
        health=column("health"),
        shield=column("shield"),
        armour=column("armour"),
        radius=radius,
        separation=column("separation"),
        step=step,
        acceleration=np.where(gained > 0, gained, step),
        period=column("period", LOOPS_PER_SECOND),
        second_hit=column("second_hit"),
        range=column("range"),
        bolt_step=column("bolt_speed", 1 / LOOPS_PER_SECOND),
        heals=heals,
        fights=column("fights").astype(bool),
        flying=column("flying").astype(bool),
        damage=np.array([[damage_of(attacker, target) for target in units] for attacker in units], np.float32),
        healable=(heals > 0)[:, None] & healed[None, :],
        reach=(column("range") + radius)[:, None] + radius[None, :],
    )


def damage_of(attacker: Unit, target: Unit) -> float:
    """What one hit takes from shields; armour comes off what gets through to health."""
    if not attacker.fights or (target.flying and not attacker.hits_air):
        return 0.0
    return attacker.damage + attacker.versus_light * target.light + attacker.versus_armored * target.armored
