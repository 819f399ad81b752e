"""The multi-robot warehouse RWARE (the package `rware`): robots bring requested shelves to the goals.

An episode has a book of orders, each of which is a subtask: one shelf to bring. As many as the environment requests at
once are active; when one is delivered, the next order of the book appears. The episode ends when the book is done.
Where a robot has to go for an order, shelf by shelf and turn by turn, is told by relations (`warehouse_ways.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import gymnasium
import jax.numpy as jnp
import numpy as np
import rware  # noqa: F401  # registers the environments
from jaxtyping import PRNGKeyArray
from rware.warehouse import Direction

import alma
from alma.task.choice import choose_uniformly
from alma.task.view import Actions, Allocation
from examples.rules import closest_first, nearest
from examples.warehouse_ways import MOVES, Ways

ACTIONS = ("wait", "forward", "left", "right", "toggle load")
FORWARD, TOGGLE = 1, 4
CLOCKWISE = (Direction.UP, Direction.RIGHT, Direction.DOWN, Direction.LEFT)
HEADINGS = tuple(f"heads {heading.name.lower()}" for heading in CLOCKWISE)
FEATURES = ("robot", "order", *HEADINGS, "loaded", "carries an order", "blocked ahead", "on the road", "row", "column")
CELL = slice(-2, None)
RELATIONS = ("south", "east", "distance", "here", "I carry it", "somebody else carries it")
RELATIONS += ("steps to deliver it", "next: forward", "next: left", "next: right", "next: toggle load")
STEPS, NEXT = RELATIONS.index("steps to deliver it"), RELATIONS.index("next: forward")
FAR = 100
"""Steps to deliver an order are divided by this; orders that another robot carries are so far away."""
REWARD = 20.0
"""What is paid for the deliveries of a whole book."""
PICK_UP, APPROACH = 0.25, 0.02
"""Paid for lifting the shelf of an order, and for each step that an order is nearer to its delivery; in deliveries."""


@dataclass(eq=False)
class RobotWarehouse(alma.Simulator):
    """Robots bring requested shelves to the goals, order by order, until a book of orders is done."""

    env: str = "rware-tiny-4ag-v2"
    """Name at Gymnasium: the size of the warehouse, and the number of robots."""
    orders: int = 8
    """Number of orders in the book."""
    max_steps: int = 150
    """Time limit in steps."""

    metrics = ("delivered",)

    def __post_init__(self) -> None:
        self.game = gymnasium.make(self.env, disable_env_checker=True).unwrapped
        if self.orders < (at_once := self.game.request_queue_size):
            raise ValueError(f"orders must be at least {at_once}, which {self.env} requests at once, not {self.orders}")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, not {self.max_steps}")

    @property
    def spec(self) -> alma.TaskSpec:
        return alma.TaskSpec(
            name=self.env,
            agents=self.game.n_agents,
            entities=self.game.n_agents + self.orders,
            subtasks=self.orders,
            actions=ACTIONS,
            features=FEATURES,
            relations=RELATIONS,
            max_steps=self.max_steps,
            mask_subtask_actions=True,  # robots lift the shelf of their own order only
            max_things=1,
            places=("row", "column"),
        )

    @property
    def rules(self) -> Mapping[str, Callable[[alma.View], Allocation]]:
        return {"closest-first": partial(closest_first, distance=STEPS), "nearest": partial(nearest, distance=STEPS)}

    @property
    def scripts(self) -> Mapping[str, Callable[[PRNGKeyArray, alma.View, Allocation], Actions]]:
        return {"scripted": scripted}

    # ---- episodes

    def reset(self, seed: int) -> alma.View:
        self.game.reset(seed=seed)
        self.ways = Ways.of(self.game.highways.tobytes(), self.game.grid_size, tuple(self.game.goals))
        self.shelves = [*self.game.request_queue, *[None] * (self.orders - len(self.game.request_queue))]
        """The shelf of every order; None for orders that have not appeared or are delivered."""
        self.requests = list(range(len(self.game.request_queue)))
        """The order behind each of the environment's requests; None if it is not in the book."""
        self.appeared = len(self.requests)
        self.finished = np.zeros(self.orders, bool)
        self.lifted = np.zeros(self.orders, bool)
        self.time = 0
        return self._look()

    def step(self, actions: np.ndarray) -> tuple[alma.View, alma.Outcome]:
        steps_before, active = self.steps_left, self._active()
        requested = list(self.game.request_queue)
        self.game.step(actions.tolist())
        self.time += 1
        delivered = self._deliver(requested)
        carried = np.array([shelf is not None and shelf in self._loads() for shelf in self.shelves])
        newly_lifted = carried & ~self.lifted
        self.lifted |= newly_lifted
        view = self._look()
        nearer = np.where(delivered, steps_before, steps_before - self.steps_left)
        progress = delivered + PICK_UP * newly_lifted + APPROACH * np.where(active, nearer, 0)
        rewards = (REWARD / self.orders * progress * active).astype(np.float32)
        done = bool(self.finished.all())
        return view, alma.Outcome(
            reward=float(rewards.sum()),
            subtask_rewards=rewards,
            terminated=done,
            truncated=not done and self.time >= self.max_steps,
            finished=self.finished.copy(),
            success=done,
            metrics={"delivered": float(delivered.sum())},
        )

    def _deliver(self, requested: list) -> np.ndarray:
        """Close the orders whose requests the environment has replaced, and open the next ones of the book."""
        delivered = np.zeros(self.orders, bool)
        for place, (before, now) in enumerate(zip(requested, self.game.request_queue, strict=True)):
            if before is now:
                continue
            order = self.requests[place]
            if order is not None:
                delivered[order] = True
                self.shelves[order] = None
            self.requests[place] = None
            if self.appeared < self.orders:
                self.requests[place] = self.appeared
                self.shelves[self.appeared] = now
                self.appeared += 1
        self.finished |= delivered
        return delivered

    def _active(self) -> np.ndarray:
        return np.array([shelf is not None for shelf in self.shelves])

    def _loads(self) -> list:
        return [robot.carrying_shelf for robot in self.game.agents]

    # ---- what is seen

    def _look(self) -> alma.View:
        game, active = self.game, self._active()
        robots = np.array([(robot.y, robot.x) for robot in game.agents])
        heading = np.array([CLOCKWISE.index(robot.dir) for robot in game.agents])
        cells = np.array([(0, 0) if shelf is None else (shelf.y, shelf.x) for shelf in self.shelves])
        loads = self._loads()
        carries = np.array([[load is not None and load is shelf for shelf in self.shelves] for load in loads])
        loaded = np.array([load is not None for load in loads])
        standing = game.grid[1] > 0
        standing[tuple(robots[loaded].T)] = False
        errands = self.ways.errands(robots, heading, loaded, carries, cells, standing)
        taken = carries.any(axis=0) & ~carries
        steps = np.where(taken, FAR, np.minimum(errands.steps, FAR)) * active
        self.steps_left = np.min(steps, axis=0)
        ahead, inside = self.ways.ahead(robots, heading)
        obstacle = ~inside | (game.grid[0] > 0)[tuple(ahead.T)] | (loaded & standing[tuple(ahead.T)])
        agents, orders = len(robots), self.orders
        present = np.concatenate([np.ones(agents, bool), active])
        own = np.stack([loaded, carries.any(axis=1), obstacle], axis=1)
        features = np.zeros((agents + orders, len(FEATURES)), np.float32)
        features[:agents, 0], features[agents:, 1] = 1, 1
        features[:agents, 2:6] = np.eye(4)[heading]
        features[:agents, 6:9] = own
        features[agents:, 9] = carries.any(axis=0)
        features[:, CELL] = np.concatenate([robots, cells]) / game.grid_size
        here = np.all(robots[:, None] == cells[None], axis=-1) & active
        return alma.View(
            entities=features * present[:, None],
            present=present,
            visible=np.broadcast_to(present, (agents, agents + orders)),
            subtask=np.concatenate([np.full(agents, alma.NOBODY), np.where(active, np.arange(orders), alma.NOBODY)]),
            active=active,
            **self._actions(robots, loaded, carries, inside, standing, ahead, here),
            relations=self._relations(robots, cells, here, carries, taken, steps, errands.action) * present[:, None],
        )

    def _actions(
        self,
        robots: np.ndarray,
        loaded: np.ndarray,
        carries: np.ndarray,
        inside: np.ndarray,
        standing: np.ndarray,
        ahead: np.ndarray,
        here: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Robots lift shelves of orders alone, and put down only what is no order, where there is a free place."""
        on_rack = self.game.highways[tuple(robots.T)] == 0
        lifts = ~loaded & here.any(axis=1)
        puts_down = loaded & ~carries.any(axis=1) & on_rack
        forward = inside & ~(loaded & standing[tuple(ahead.T)])
        yes = np.ones(len(robots), bool)
        target = np.full((len(robots), len(ACTIONS)), -1)
        target[:, TOGGLE] = np.where(lifts, len(robots) + here.argmax(axis=1), -1)
        return {"available": np.stack([yes, forward, yes, yes, lifts | puts_down], axis=1), "target": target}

    def _relations(
        self,
        robots: np.ndarray,
        cells: np.ndarray,
        here: np.ndarray,
        carries: np.ndarray,
        taken: np.ndarray,
        steps: np.ndarray,
        action: np.ndarray,
    ) -> np.ndarray:
        agents, size = len(robots), max(self.game.grid_size)
        offset = np.concatenate([robots, cells])[None] - robots[:, None]
        relations = np.zeros((*offset.shape[:2], len(RELATIONS)), np.float32)
        relations[..., :2] = offset / size
        relations[..., 2] = np.abs(offset).sum(axis=-1) / size
        relations[:, agents:, 3:7] = np.stack([here, carries, taken, steps / FAR], axis=-1)
        relations[:, agents:, NEXT:] = np.eye(len(MOVES))[action]
        return relations

    def scene(self, view: alma.View) -> alma.Scene:
        height, width = self.game.grid_size

        def marker(entity: int) -> alma.Marker | None:
            if not view.present[entity]:
                return None
            row, column = np.round(np.asarray(view.entities[entity, CELL], float) * (height, width)).tolist()
            at = (column + 0.5, height - row - 0.5)
            if entity >= len(view.available):
                return alma.Marker("shelf", at, "square", 0.42)
            loaded = view.entities[entity, FEATURES.index("loaded")] > 0
            return alma.Marker("robot", at, "disc", 0.36, "R", status="loaded" if loaded else "empty")

        markers = tuple(marker(entity) for entity in range(len(view.present)))
        standing = tuple("requested" if active else "" for active in view.active)
        return alma.Scene((width, height), markers, grid=True, subtask="order", standing=standing)


def scripted(key: PRNGKeyArray, view: alma.View, allocation: Allocation) -> Actions:
    """Do what has to be done next for one's order; wait or turn at random where another robot is in the way."""
    agents = len(allocation)
    mine = view.relations[jnp.arange(agents), agents + jnp.maximum(allocation, 0)]
    wanted = 1 + jnp.argmax(mine[:, NEXT:], axis=1)
    blocked = (view.entities[:agents, FEATURES.index("blocked ahead")] > 0) & (wanted == FORWARD)
    possible = jnp.take_along_axis(view.available, wanted[:, None], axis=1)[:, 0] & (allocation != alma.NOBODY)
    avoid = choose_uniformly(key, view.available & jnp.asarray([True, False, True, True, False]))
    return jnp.where(possible & ~blocked, wanted, avoid)
