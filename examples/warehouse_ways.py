"""Ways of robots that turn on the spot: how many steps it takes, and what to do first, to bring a shelf to a goal.

Robots without a load drive below shelves; loaded ones keep to the roads, except for the first and the last cell. That
other robots may stand in the way is left out: robots see each other, and learn to get by.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

AHEAD = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
"""What a step forward adds to (row, column), by heading: up, right, down, left."""
MOVES = ("forward", "left", "right", "toggle load")
LIFT = 3
INTO_RACK = 0.25
"""What it costs more to enter a rack cell with a load, so that no way leads across one."""


@dataclass(frozen=True)
class Errands:
    """For every robot and order, robots x orders."""

    steps: np.ndarray
    """Steps until the shelf would be at a goal."""
    action: np.ndarray
    """What to do now, as an index into `MOVES`."""


@dataclass(frozen=True)
class Ways:
    """Distances in steps from every node (cell x 4 + heading) to every cell. The last row is far from everywhere."""

    shape: tuple[int, int]
    goals: np.ndarray
    """Cells as numbers: row x width + column."""
    racks: np.ndarray
    free: np.ndarray
    loaded: np.ndarray
    next_node: np.ndarray
    """The node after each of the moves forward, left and right; -1 where that leaves the map."""
    loaded_cost: np.ndarray
    """What these moves cost with a load; infinite where they are impossible."""

    @staticmethod
    @lru_cache
    def of(highways: bytes, shape: tuple[int, int], goals: tuple[tuple[int, int], ...]) -> "Ways":
        """The ways of a layout, computed once. Goals are (column, row)."""
        road = np.frombuffer(highways, np.uint8).astype(bool)
        next_node = _next_nodes(shape)
        free = np.ones(next_node.shape)
        to_cell, from_cell = next_node // 4, np.arange(len(next_node))[:, None] // 4
        turns = to_cell == from_cell
        loaded = np.where(turns | road[to_cell], 1, np.where(road[from_cell], 1 + INTO_RACK, np.inf))
        return Ways(
            shape=shape,
            goals=np.array([row * shape[1] + column for column, row in goals]),
            racks=np.flatnonzero(~road),
            free=_distances(next_node, free),
            loaded=_distances(next_node, loaded),
            next_node=next_node,
            loaded_cost=loaded,
        )

    def ahead(self, robots: np.ndarray, heading: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cells before robots, and whether they are on the map; if not, they are the robots' own."""
        cells = robots + AHEAD[heading]
        inside = np.all((cells >= 0) & (cells < self.shape), axis=1)
        return np.where(inside[:, None], cells, robots), inside

    def errands(
        self,
        robots: np.ndarray,
        heading: np.ndarray,
        loaded: np.ndarray,
        carries: np.ndarray,
        cells: np.ndarray,
        standing: np.ndarray,
    ) -> Errands:
        """What robots have to do for orders, whose shelves are at `cells`.

        A robot that carries the shelf of an order brings it to the nearest goal. One with another load gets rid of
        that first: at a goal if it is an order too, else at the nearest empty place of a rack.
        """
        node = self._number(robots) * 4 + heading
        shelf = self._number(cells)
        empty = self.racks[~standing.ravel()[self.racks]]
        goal = self.goals[np.argmin(self.loaded[node[:, None], self.goals], axis=1)]
        back = empty[np.argmin(self.loaded[node[:, None], empty], axis=1)] if len(empty) else goal
        first = np.where(carries.any(axis=1), goal, back)  # where a loaded robot goes first
        target = np.where(loaded[:, None], first[:, None], shelf[None])
        here = np.where(loaded[:, None], self.loaded[node[:, None], target], self.free[node[:, None], target])
        deliver = np.min(self.loaded[shelf[:, None] * 4, self.goals], axis=1) + 1
        fetch = np.where(loaded[:, None], self.free[first[:, None] * 4, shelf[None]] + 1, 0)
        steps = np.where(carries, here, here + fetch + deliver)
        return Errands(steps, self._first(node, target, loaded, here))

    def _first(self, node: np.ndarray, target: np.ndarray, loaded: np.ndarray, steps: np.ndarray) -> np.ndarray:
        after, target = self.next_node[node][:, None, :], target[..., None]
        with_load = self.loaded_cost[node][:, None, :] + self.loaded[after, target]
        then = np.where(loaded[:, None, None], with_load, self.free[after, target])
        return np.where(steps == 0, LIFT, np.argmin(then, axis=-1))

    def _number(self, cells: np.ndarray) -> np.ndarray:
        return cells[:, 0] * self.shape[1] + cells[:, 1]


def _next_nodes(shape: tuple[int, int]) -> np.ndarray:
    """The node after going forward, turning left and turning right, nodes x 3."""
    height, width = shape
    row, column, heading = (axis.ravel() for axis in np.indices((height, width, 4)))
    to = np.stack([row, column], axis=1) + AHEAD[heading]
    inside = np.all((to >= 0) & (to < shape), axis=1)
    forward = np.where(inside, (to[:, 0] * width + to[:, 1]) * 4 + heading, -1)
    here = (row * width + column) * 4
    return np.stack([forward, here + (heading - 1) % 4, here + (heading + 1) % 4], axis=1)


def _distances(next_node: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The least cost from every node to every cell, with whatever heading; the last row is infinite."""
    nodes = len(next_node)
    possible = (next_node >= 0) & np.isfinite(cost)
    start, end = np.nonzero(possible)[0], next_node[possible]
    graph = coo_array((cost[possible], (start, end)), shape=(nodes, nodes)).tocsr()
    steps = dijkstra(graph).reshape(nodes, nodes // 4, 4).min(axis=-1)
    return np.concatenate([steps, np.full((1, steps.shape[1]), np.inf)])
