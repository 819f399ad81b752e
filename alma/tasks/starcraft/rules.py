"""The rules of the base defence: all constants, in one frozen dataclass."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from alma.tasks.starcraft.units import UNITS, Table, make_table

POOLS = {"sz": ("stalker", "zealot"), "mmm": ("marine", "marauder", "medivac")}
"""Unit pools of the paper."""

LOOPS_PER_STEP = 8
"""Game loops per environment step."""

MAX_REWARD = {
    ("sz", "symmetric"): 1550.0,
    ("sz", "disadvantage"): 1720.0,
    ("mmm", "symmetric"): 930.0,
    ("mmm", "disadvantage"): 985.0,
}
"""Maximum returns that the paper's experiments scaled rewards by."""


@dataclass(frozen=True)
class Rules:
    """The rules of a game of base defence. Lengths are in cells, times in environment steps of half a second."""

    units: str = "sz"
    """Unit pool: `sz` (Stalkers and Zealots), `mmm` (Marines, Marauders and Medivacs), or types joined by `+`, as in
    `marine+zergling`."""
    balance: Literal["symmetric", "disadvantage"] = "symmetric"
    """Whether the enemy has the same units (symmetric), or one more (disadvantage)."""
    spread: float | tuple[float, float] = 1.0
    """1: armies come from all sides; 0: all from one. A number, or a range from which that of every army is drawn."""
    one_spread: float | None = None
    """Spread of the last army alone, if it differs from that of the others. Directions are measured from that of the
    first army, whose own spread has no effect."""
    fighters: int | tuple[int, int] | None = None
    """Number of our units with a weapon: a number, or a range. If not given, 3 to 8 (`mmm`: 3 to 6)."""
    medivacs: int | tuple[int, int] = (0, 2)
    """Number of our Medivacs, where the pool has them: a number, or a range."""
    team_seed: int = 0
    """Random seed that decides, for each team, which unit the enemy has more at a disadvantage."""

    map_size: float = 32.0
    """Length of each side of the map."""
    base_radius: float = 2.0
    """Radius of the base; an enemy within it that can fight is a defeat."""
    army_distance: float = 14.0
    """Distance from the base to where armies start."""
    max_armies: int = 3
    """Largest number of armies, each of which is a subtask."""
    max_army_size: int = 4
    """Largest number of enemies in an army."""
    first_attack: int = 20
    """Armies first attack within this many steps; one of them at once."""
    dwell: int | tuple[int, int] = (11, 20)
    """Steps that an army attacks or retreats for: a number, or a range."""
    order_distance: float = 2.0
    """Distance from a unit to the destination of its move."""
    order_range: float = 6.0
    """Distance up to which units can be ordered to attack or heal another, from centre to centre."""
    sight: float = 28.0
    """Distance up to which agents see entities."""
    max_steps: int = 150
    """Time limit in steps; reaching it is a defeat."""

    kill_reward: float = 10.0
    """Reward for a killed enemy, in addition to the damage."""
    win_reward: float = 200.0
    """Reward for victory, and for a beaten army in its own reward."""
    heal_bonus: float = 4.0
    """At a disadvantage, our units that are nearest to the start of a beaten army get back a fraction of their full
    health and shields: this number x (enemies - agents) / (agents x other armies)."""

    def __post_init__(self) -> None:
        for name in ("spread", "fighters", "medivacs", "dwell"):
            if isinstance(value := getattr(self, name), list):  # JSON and the command line turn tuples into lists
                object.__setattr__(self, name, tuple(value))
        self._check_pool()
        self._check_numbers()

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Names of the unit types in play."""
        return POOLS.get(self.units, tuple(self.units.split("+")))

    @cached_property
    def table(self) -> Table:
        return make_table(self.types)

    @property
    def fighter_range(self) -> tuple[int, int]:
        if self.fighters is None:
            return (3, 6) if self.units == "mmm" else (3, 8)
        return _as_range(self.fighters)

    @property
    def medivac_range(self) -> tuple[int, int]:
        return _as_range(self.medivacs) if "medivac" in self.types else (0, 0)

    @property
    def dwell_range(self) -> tuple[int, int]:
        return _as_range(self.dwell)

    @property
    def extra_enemies(self) -> int:
        """The number of units that the enemy has more than we."""
        return int(self.balance == "disadvantage")

    @property
    def max_agents(self) -> int:
        return self.fighter_range[1] + self.medivac_range[1]

    @property
    def max_enemies(self) -> int:
        return self.max_agents + self.extra_enemies

    @property
    def max_targets(self) -> int:
        """The most units that one of ours can aim at, of those that belong to the same army: its enemies, or for
        healers its team mates."""
        return max(self.max_army_size, self.max_agents - 1 if self.table.heals.any() else 0)

    @property
    def spread_range(self) -> tuple[float, float]:
        return self.spread if isinstance(self.spread, tuple) else (self.spread, self.spread)

    @cached_property
    def teams(self) -> np.ndarray:
        """All possible teams, as the number of units of each type."""
        low, high = self.fighter_range
        fighters = [kind for kind in self.types if UNITS[kind].fights]
        counts = []
        for size in range(low, high + 1):
            for drawn in itertools.combinations_with_replacement(fighters, size):
                for medivacs in range(self.medivac_range[0], self.medivac_range[1] + 1):
                    team = [*drawn, *["medivac"] * medivacs]
                    counts.append([team.count(kind) for kind in self.types])
        return np.array(counts, np.int32)

    @cached_property
    def enemy_teams(self) -> np.ndarray:
        """The enemies of each team: the same units, plus one fighter at a disadvantage, fixed by `team_seed`."""
        fighters = [i for i, kind in enumerate(self.types) if UNITS[kind].fights]
        extra = np.random.default_rng(self.team_seed).choice(fighters, len(self.teams))
        return self.teams + self.extra_enemies * np.eye(len(self.types), dtype=np.int32)[extra]

    @property
    def reward_scale(self) -> float:
        """The factor on all rewards, so that the best return is about 20.

        For the paper's settings it is the paper's, whatever `kill_reward` and `win_reward`. For all others it follows
        from the best return that is possible, so that changing one of these two rescales every reward.
        """
        known = MAX_REWARD.get((self.units, self.balance))
        if known is not None and self.fighters is None:
            return 20 / known
        toughest = max(UNITS[kind].health + UNITS[kind].shield for kind in self.types if UNITS[kind].fights)
        return 20 / ((self.fighter_range[1] + self.extra_enemies) * (toughest + self.kill_reward) + self.win_reward)

    def _check_pool(self) -> None:
        unknown = [kind for kind in self.types if kind not in UNITS]
        if unknown or len(set(self.types)) != len(self.types):
            raise ValueError(
                f"units must be {', '.join(POOLS)}, or different types joined by +, from {', '.join(UNITS)}; "
                f"not {self.units!r}"
            )
        if not any(UNITS[kind].fights for kind in self.types):
            raise ValueError(f"units must include one that fights, not only {self.units!r}")
        if self.balance not in ("symmetric", "disadvantage"):
            raise ValueError(f"balance must be symmetric or disadvantage, not {self.balance!r}")

    def _check_numbers(self) -> None:
        for name in ("fighters", "medivacs", "dwell"):
            value = getattr(self, name)
            if value is None:
                continue
            low, high = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
            least = 0 if name == "medivacs" else 1
            if type(low) is not int or type(high) is not int or not least <= low <= high:
                raise ValueError(f"{name} must be whole numbers (fewest, most) from {least}, not {value!r}")
        room = self.max_armies * self.max_army_size
        if self.fighter_range[0] + self.extra_enemies < 2 or self.max_enemies > room:
            raise ValueError(
                f"there must be 2 enemies at least and {room} at most ({self.max_armies} armies of up to "
                f"{self.max_army_size}), not {self.fighter_range[0] + self.extra_enemies} to {self.max_enemies}"
            )
        low, high = self.spread_range
        if not 0 <= low <= high <= 1:
            raise ValueError(f"spread must lie between 0 and 1, or be a pair (low, high) of these, not {self.spread!r}")
        one = self.one_spread
        if one is not None and not (isinstance(one, int | float) and 0 <= one <= 1):
            raise ValueError(f"one_spread must lie between 0 and 1, not {one!r}")
        for name in ("map_size", "base_radius", "army_distance", "order_distance", "order_range", "sight"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        if self.army_distance + 1 > self.map_size / 2:
            raise ValueError(f"army_distance must fit on the map: less than {self.map_size / 2 - 1}")
        if type(self.max_steps) is not int or not 1 <= self.max_steps <= 32_000:
            raise ValueError(f"max_steps must be a whole number from 1 to 32000, not {self.max_steps!r}")
        if self.max_armies < 2 or self.max_army_size < 1 or not 1 <= self.first_attack <= 100:
            raise ValueError("max_armies must be at least 2, max_army_size at least 1, first_attack from 1 to 100")


def _as_range(value: int | tuple[int, int]) -> tuple[int, int]:
    """A range (fewest, most) from a range or a single number."""
    return value if isinstance(value, tuple) else (value, value)
