"""The rules of SaveTheCity: all constants, in one frozen dataclass."""

import dataclasses
import math
from dataclasses import dataclass
from enum import IntEnum


class AgentType(IntEnum):
    """The types of agents."""

    FIREFIGHTER = 0
    BUILDER = 1
    GENERALIST = 2


class BuildingType(IntEnum):
    """The types of buildings, which differ in how fast and how often they burn."""

    FAST = 0
    """Burns fast, catches fire seldom."""
    SLOW = 1
    """Burns slowly, catches fire often."""


class Action(IntEnum):
    """The actions of agents. `FAR` moves go two cells; they and `FREEZE` are only available to generalists."""

    STAY = 0
    NORTH = 1
    EAST = 2
    SOUTH = 3
    WEST = 4
    FAR_NORTH = 5
    FAR_EAST = 6
    FAR_SOUTH = 7
    FAR_WEST = 8
    FIGHT = 9
    BUILD = 10
    FREEZE = 11


ABSENT = -1
"""The type of agent and building slots that are not used in an episode."""

HEALTH_RETURN = 5
"""The return, before it is scaled, for the health that a building gains until it is complete: half of it on average,
times the default `health_reward`."""

BEST_SCALED_RETURN = 20
"""About the best return after scaling."""

SITE_SPACING = 3
"""Distance between building sites in cells. The rules rely on a cell being adjacent to at most one building."""


@dataclass(frozen=True)
class Rules:
    """The rules of a game of SaveTheCity.

    Options with a number for each type of agent or building are in the order of `AgentType` or `BuildingType`.
    """

    agents: int | tuple[int, int] = (2, 5)
    """Team size: a number, or a range 2..5. There is one building more than agents."""
    grid_size: int = 16
    """Cells along one side of the map; even."""
    max_steps: int = 150
    """Time limit in steps; reaching it truncates the episode."""

    low_health: tuple[float, float] = (0.25, 0.4)
    """A building starts with a health from this range or, with equal chance, from that of `high_health`."""
    high_health: tuple[float, float] = (0.6, 0.75)
    """The other range of initial health."""
    start_on_fire: float = 0.4
    """Probability that a building is on fire at the start."""
    burn_rate: tuple[float, float] = (1.0, 0.5)
    """How fast fire damages a fast-burning and a slow-burning building."""
    fast_interval: tuple[int, int] = (60, 80)
    """A fast-burning building catches fire once in this many steps (smallest, largest)."""
    slow_interval: tuple[int, int] = (10, 30)
    """A slow-burning building catches fire once in this many steps (smallest, largest)."""

    fire_growth: float = 1.1
    """Factor by which a fire that nobody fights grows in a step, up to strength 1."""
    fire_damage: float = 0.035
    """Health that a fire of strength 1 takes from a building in a step, at burn rate 1."""
    fight_power: float = 0.25
    """Strength that an agent of fighting speed 1 takes from a fire in a step."""
    fight_speed: tuple[float, float, float] = (1.0, 0.05, 0.0)
    """Fighting speed of firefighters, builders and generalists."""
    build_power: float = 0.125
    """Health that an agent of building speed 1 gives to a building in a step."""
    build_speed: tuple[float, float, float] = (0.05, 1.0, 0.0)
    """Building speed of firefighters, builders and generalists."""
    help_speed: float = 0.45
    """Speed that generalists add, once per building, when working with a builder that fights or a firefighter that
    builds."""

    health_reward: float = 10.0
    """Reward per change of a building's health by 1."""
    extinguish_reward: float = 0.5
    """Reward for putting out a fire."""
    burn_down_reward: float = -20.0
    """Reward for a building that burns down."""
    complete_reward: float = 1.0
    """Reward for a completed building, in the global reward. All rewards are scaled so that the best return stays about
    20."""
    complete_subtask_reward: float = 20.0
    """Reward for a completed building, in the building's own reward."""
    solve_reward: float = 20.0
    """Reward for a city with every building complete, in the global reward. All rewards are scaled so that the best
    return stays about 20."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):  # JSON and the command line turn tuples into lists
                object.__setattr__(self, field.name, tuple(value))
        self._check_kinds()
        self._check_sizes()
        self._check_numbers()

    @property
    def team_sizes(self) -> tuple[int, int]:
        """The smallest and the largest team."""
        return self.agents if isinstance(self.agents, tuple) else (self.agents, self.agents)

    @property
    def max_agents(self) -> int:
        return self.team_sizes[1]

    @property
    def max_buildings(self) -> int:
        return self.max_agents + 1

    @property
    def site_coordinates(self) -> tuple[int, ...]:
        """The coordinates of sites along either axis; all four neighbours of a site are on the map."""
        return tuple(range(1, self.grid_size - 1, SITE_SPACING))

    @property
    def best_return(self) -> float:
        """About the best return of the largest team before scaling: for health, complete buildings and the city."""
        return self.max_buildings * (HEALTH_RETURN + self.complete_reward) + self.solve_reward

    @property
    def reward_scale(self) -> float:
        """The factor on all rewards, global ones and those of buildings, so that the best return is about 20.

        It depends on `complete_reward`, `solve_reward` and the largest team, so that changing one of them rescales
        every reward. `health_reward` does not enter.
        """
        return BEST_SCALED_RETURN / self.best_return

    def _check_kinds(self) -> None:
        """Every rule except the team size must be a finite number, or as many of them as its default has."""
        for field in dataclasses.fields(self)[1:]:
            value, default = getattr(self, field.name), field.default
            numbers = value if isinstance(value, tuple) else (value,)
            if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
                raise ValueError(f"{field.name} must be made of finite numbers, not {value!r}")
            if isinstance(default, tuple) and len(numbers) != len(default):
                raise ValueError(f"{field.name} must hold {len(default)} numbers, not {value!r}")
            if not isinstance(default, tuple) and isinstance(value, tuple):
                raise ValueError(f"{field.name} must be one number, not {value!r}")

    def _check_sizes(self) -> None:
        if not isinstance(self.grid_size, int) or self.grid_size % 2 or not 6 <= self.grid_size <= 126:
            raise ValueError(f"grid_size must be an even number from 6 to 126, not {self.grid_size!r}")
        sites = len(self.site_coordinates) ** 2
        sizes = self.agents if isinstance(self.agents, tuple) else (self.agents, self.agents)
        if len(sizes) != 2 or not all(type(n) is int for n in sizes) or not 2 <= sizes[0] <= sizes[1] <= sites - 1:
            raise ValueError(
                f"agents must be a team size, or a pair (smallest, largest), from 2 to {sites - 1} "
                f"({sites} sites, one building more than agents), not {self.agents!r}"
            )
        if type(self.max_steps) is not int or not 1 <= self.max_steps <= 32_000:
            raise ValueError(f"max_steps must be a whole number from 1 to 32000, not {self.max_steps!r}")

    def _check_numbers(self) -> None:
        for name in ("low_health", "high_health"):
            low, high = getattr(self, name)
            if not 0 < low <= high < 1:
                raise ValueError(f"{name} must be (low, high) with 0 < low <= high < 1, not {(low, high)}")
        for name in ("fast_interval", "slow_interval"):
            low, high = getattr(self, name)
            if type(low) is not int or type(high) is not int or not 1 <= low <= high <= 32_000:
                raise ValueError(f"{name} must be whole numbers (low, high) from 1 to 32000, not {(low, high)}")
        if not 0 <= self.start_on_fire <= 1:
            raise ValueError(f"start_on_fire is a chance, from 0 to 1, not {self.start_on_fire}")
        if self.fire_growth < 1:
            raise ValueError(f"fire_growth must be at least 1, not {self.fire_growth}")
        powers = ("burn_rate", "fire_damage", "fight_power", "fight_speed", "build_power", "build_speed", "help_speed")
        for name in (*powers, "complete_reward", "solve_reward"):
            value = getattr(self, name)
            if any(number < 0 for number in (value if isinstance(value, tuple) else (value,))):
                raise ValueError(f"{name} must not be negative, not {value}")
