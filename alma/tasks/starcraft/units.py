"""The properties of unit types: the game's own data, at "normal" speed (16 game loops per second)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

LOOPS_PER_SECOND = 16


@dataclass(frozen=True)
class Unit:
    """A type of unit. Times are in seconds, lengths in cells."""

    health: float
    radius: float
    separation: float
    """Two colliding units keep their centres at least the sum of their separations apart."""
    speed: float
    shield: float = 0
    armour: float = 0
    light: bool = False
    armored: bool = False
    biological: bool = False
    flying: bool = False
    acceleration: float = 0
    """Increase of speed per second; 0: reaches full speed at once."""
    damage: float = 0
    """Damage of one hit; 0: has no weapon."""
    versus_light: float = 0
    """Additional damage to light units."""
    versus_armored: float = 0
    """Additional damage to armoured units."""
    period: float = 1
    """Time between shots."""
    second_hit: float = 0
    """Game loops after which a shot hits a second time; 0: it hits only once."""
    range: float = 0
    hits_air: bool = False
    bolt_speed: float = 0
    """Speed of the projectile; 0: shots hit at once."""
    heals: float = 0
    """Health given per second; 0: does not heal."""

    @property
    def fights(self) -> bool:
        """Whether it has a weapon."""
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
"""All unit types. Colossi hit a single target; their second beam hits a loop after the first."""

SHIELD_PER_LOOP = 2 / LOOPS_PER_SECOND
SHIELD_DELAY = 10 * LOOPS_PER_SECOND
"""Loops without damage before shields regenerate."""
ENERGY_START, ENERGY_MAX, ENERGY_PER_LOOP, ENERGY_PER_HEALTH = 50.0, 200.0, 0.5625 / LOOPS_PER_SECOND, 0.33
JITTER = (-1.0, 2.0)
"""Range of the random variation of the time between shots, in loops."""
LEAST_DAMAGE = 0.5
"""Minimum damage of a hit after armour."""


class Table(NamedTuple):
    """The properties of the unit types in play as arrays, one row per type. Times are in game loops."""

    health: np.ndarray
    shield: np.ndarray
    armour: np.ndarray
    radius: np.ndarray
    separation: np.ndarray
    step: np.ndarray
    """Full speed, in cells per loop."""
    acceleration: np.ndarray
    """Increase of speed per loop; equal to `step` for types that reach full speed at once."""
    period: np.ndarray
    """Loops between shots."""
    second_hit: np.ndarray
    """Loops from the first to the second hit; 0: there is none."""
    range: np.ndarray
    bolt_step: np.ndarray
    """Speed of projectiles, in cells per loop; 0: shots hit at once."""
    heals: np.ndarray
    """Health given per loop."""
    fights: np.ndarray
    flying: np.ndarray
    damage: np.ndarray
    """Damage of a hit before armour, by attacker and target type; 0 if the attacker cannot hit the target."""
    healable: np.ndarray
    """Whether the first type heals the second."""
    reach: np.ndarray
    """Distance between centres within which the first type can hit or heal the second."""


@lru_cache
def make_table(names: tuple[str, ...]) -> Table:
    """The table of the named unit types."""
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
    """Damage of one hit before armour, which only reduces damage to health, not to shields."""
    if not attacker.fights or (target.flying and not attacker.hits_air):
        return 0.0
    return attacker.damage + attacker.versus_light * target.light + attacker.versus_armored * target.armored
