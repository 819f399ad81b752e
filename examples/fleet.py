"""A delivery fleet in plain Python: which vehicle serves which order, so that most arrive in time?"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import alma


@dataclass
class Fleet(alma.Simulator):
    """Vehicles fetch orders from shops and bring them to customers, each before its deadline."""

    vehicles: int = 3
    """Number of vehicles."""
    orders: int = 8
    """Number of orders in an episode; half of them come in later."""
    size: int = 10
    """Length of the map in cells."""

    metrics = ("late",)

    @property
    def spec(self):
        return alma.TaskSpec(
            name="fleet",
            agents=self.vehicles,
            entities=self.vehicles + self.orders,
            subtasks=self.orders,
            actions=("wait", *(f"serve order {i}" for i in range(self.orders))),
            features=("is vehicle", "is order", "fetched", "distance to the customer", "time left"),
            relations=("distance", "time to deliver", "time to spare", "carried by me"),
            max_steps=50,
            mask_subtask_actions=True,  # a vehicle serves the order that it is allocated to, or waits
        )

    def reset(self, seed):
        random = np.random.default_rng(seed)
        self.at = random.integers(self.size, size=(self.vehicles, 2))
        self.shop, self.customer = random.integers(self.size, size=(2, self.orders, 2))
        self.trip = np.abs(self.shop - self.customer).sum(axis=1)
        self.comes = np.where(np.arange(self.orders) < self.orders // 2, 0, random.integers(20, size=self.orders))
        self.deadline = self.comes + self.trip + random.integers(5, 15, size=self.orders)
        self.carrier = np.full(self.orders, -1)
        self.over, self.missed, self.time = np.zeros(self.orders, bool), 0, 0
        return self.view()

    def step(self, actions):
        before, delivered = self.active(), np.zeros(self.orders, bool)
        for vehicle, order in enumerate(actions - 1):
            if order >= 0 and before[order] and self.carrier[order] in (-1, vehicle):
                delivered[order] |= self.drive(vehicle, order)
        self.time += 1
        late = before & ~delivered & (self.time >= self.deadline)
        self.over = self.over | delivered | late
        self.missed += late.sum()
        done = bool(self.over.all())
        return self.view(), alma.Outcome(
            reward=delivered.sum() / self.orders,
            subtask_rewards=delivered / self.orders,
            terminated=done,
            truncated=not done and self.time == 50,
            finished=self.over,
            success=done and self.missed <= self.orders // 4,
            metrics={"late": late.sum()},
        )

    def active(self):
        return ~self.over & (self.comes <= self.time)

    def drive(self, vehicle, order):
        """Drive one cell towards where an order must go next; returns whether that delivers it."""
        fetched = self.carrier[order] == vehicle
        way = (self.customer if fetched else self.shop)[order] - self.at[vehicle]
        axis = np.argmax(np.abs(way))
        self.at[vehicle, axis] += np.sign(way[axis])
        if arrived := np.abs(way).sum() <= 1:
            self.carrier[order] = vehicle
        return fetched and arrived

    def view(self):
        a, m, active, fetched = self.vehicles, self.orders, self.active(), self.carrier >= 0
        mine = self.carrier == np.arange(a)[:, None]
        free = (mine | ~fetched) & active  # which vehicle can serve which order
        stop = np.where(fetched[:, None], self.customer, self.shop)
        to_stop = np.abs(stop - self.at[:, None]).sum(axis=2)
        to_deliver = to_stop + np.where(fetched, 0, self.trip)
        left = self.deadline - self.time
        entities = np.zeros((a + m, 5))
        entities[:a, 0] = 1
        entities[a:, 1:] = np.stack([active, fetched, self.trip / 10, left / 10], axis=1) * active[:, None]
        relations = np.zeros((a, a + m, 4))
        of_orders = np.stack([to_stop / 10, to_deliver / 10, (left - to_deliver) / 10, mine], axis=2)
        relations[:, a:] = of_orders * free[..., None]
        present = np.append(np.ones(a, bool), active)
        return alma.View(
            entities=entities,
            present=present,
            visible=np.tile(present, (a, 1)),
            subtask=np.append(np.full(a, alma.NOBODY), np.where(active, np.arange(m), alma.NOBODY)),
            active=active,
            available=np.column_stack([np.ones(a, bool), free]),
            target=np.tile(np.append(-1, a + np.arange(m)), (a, 1)),
            relations=relations,
        )

    @property
    def rules(self):
        return {"nearest": nearest}


def nearest(view):
    """One vehicle after the other takes the nearest order that it can serve and that no other one has taken."""
    agents, orders = view.available.shape[0], view.active.shape[0]
    distance = jnp.where(view.available[:, 1:], view.relations[:, agents:, 0], jnp.inf)
    chosen = []
    for vehicle in range(agents):
        order = jnp.argmin(distance[vehicle])
        chosen.append(jnp.where(jnp.isfinite(distance[vehicle, order]), order, alma.NOBODY))
        distance = jnp.where(jnp.arange(orders) == order, jnp.inf, distance)
    return jnp.stack(chosen)
