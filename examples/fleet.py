"""A delivery fleet in plain Python: which vehicle drives to which customer, so that most get their order in time?"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import alma


@dataclass
class Fleet(alma.Simulator):
    """Vehicles bring orders to customers, each before its deadline."""

    vehicles: int = 3
    """Number of vehicles."""
    orders: int = 8
    """Number of orders in an episode; half of them come in later."""

    @property
    def spec(self):
        return alma.TaskSpec(
            name="fleet",
            agents=self.vehicles,
            entities=self.vehicles + self.orders,  # the agents come first
            subtasks=self.orders,
            actions=("wait", *(f"drive to customer {i}" for i in range(self.orders))),
            features=("is vehicle", "is customer", "time left", "x", "y"),
            places=("x", "y"),  # of the features; positions are better told by relations
            relations=("distance", "time to spare"),
            max_steps=50,
            mask_subtask_actions=True,  # a vehicle drives to the customer whom it is allocated to, or waits
        )

    def reset(self, seed):
        random = np.random.default_rng(seed)
        self.vehicle = random.integers(10, size=(self.vehicles, 2))  # on a map of 10 x 10 cells
        self.customer = random.integers(10, size=(self.orders, 2))
        self.comes = np.where(np.arange(self.orders) < self.orders // 2, 0, random.integers(20, size=self.orders))
        self.deadline = self.comes + random.integers(5, 15, size=self.orders)
        self.delivered, self.missed, self.time = np.zeros(self.orders, bool), np.zeros(self.orders, bool), 0
        return self.view()

    def step(self, actions):
        waiting, served, driven = self.waiting(), np.zeros(self.orders, bool), np.zeros(self.orders)
        for vehicle, order in enumerate(actions - 1):
            if order >= 0 and waiting[order]:
                way = self.customer[order] - self.vehicle[vehicle]
                axis = np.argmax(np.abs(way))
                self.vehicle[vehicle, axis] += np.sign(way[axis])  # one cell
                driven[order] += 1
                served[order] |= np.abs(way).sum() <= 1
        self.time += 1
        self.delivered |= served
        self.missed |= waiting & ~served & (self.time >= self.deadline)
        done = bool((self.delivered | self.missed).all())
        return self.view(), alma.Outcome(
            reward=2.0 * served.sum(),
            subtask_rewards=2 * served + 0.2 * driven,  # the actors are paid for driving too
            terminated=done,
            truncated=False,
            finished=self.delivered | self.missed,
            success=done and not self.missed.any(),
            metrics={},
        )

    def waiting(self):
        return (self.comes <= self.time) & ~self.delivered & ~self.missed

    def view(self):
        vehicles, orders, waiting = self.vehicles, self.orders, self.waiting()
        present = np.append(np.ones(vehicles, bool), waiting)
        is_vehicle, left = np.arange(vehicles + orders) < vehicles, self.deadline - self.time
        time_left = np.append(np.zeros(vehicles), left)
        place = np.concatenate([self.vehicle, self.customer])
        distance = np.abs(self.customer - self.vehicle[:, None]).sum(axis=2)
        relations = np.zeros((vehicles, vehicles + orders, 2))
        relations[:, vehicles:] = np.stack([distance, left - distance], axis=2) / 10 * waiting[:, None]
        return alma.View(
            entities=np.column_stack([is_vehicle, ~is_vehicle, time_left / 10, place / 10]) * present[:, None],
            present=present,
            visible=np.tile(present, (vehicles, 1)),
            subtask=np.append(np.full(vehicles, alma.NOBODY), np.where(waiting, np.arange(orders), alma.NOBODY)),
            active=waiting,
            available=np.tile(np.append(True, waiting), (vehicles, 1)),
            target=np.tile(np.append(-1, vehicles + np.arange(orders)), (vehicles, 1)),
            relations=relations,
        )

    @property
    def rules(self):
        return {"closest-first": closest_first}

    @property
    def scripts(self):
        return {"drive": lambda key, view, allocation: allocation + 1}  # action 0 is to wait


def closest_first(view):
    """Of all vehicles and orders that are left, the closest two are allocated to each other, and so on."""
    distance = jnp.where(view.active, view.relations[:, len(view.available) :, 0], jnp.inf)
    allocation = jnp.full(len(distance), alma.NOBODY)
    for _ in range(len(distance)):
        vehicle, order = jnp.unravel_index(jnp.argmin(distance), distance.shape)
        is_left = jnp.isfinite(distance[vehicle, order])
        allocation = allocation.at[vehicle].set(jnp.where(is_left, order, allocation[vehicle]))
        distance = distance.at[vehicle].set(jnp.inf).at[:, order].set(jnp.inf)
    return allocation
