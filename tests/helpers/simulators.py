"""A small simulator in Python, which can be told to go wrong."""

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import alma


@dataclass
class PyDoors(alma.Simulator):
    """Agents open doors by pushing them; each takes one to three pushes. Doors that are open are not seen."""

    agents: int = 2
    """How many agents."""
    doors: int = 2
    trouble: str = ""
    """What goes wrong, see `TROUBLES`."""
    at: int = 2
    """The step of an episode in which it does."""
    once: str = ""
    """A file: trouble comes only while it does not exist, and makes it."""

    metrics = ("pushes",)

    @property
    def spec(self):
        return alma.TaskSpec(
            name="py-doors",
            agents=self.agents,
            entities=self.agents + self.doors,
            subtasks=self.doors,
            actions=("wait", *(f"push {i}" for i in range(self.doors))),
            features=("is agent", "is door", "pushes left"),
            relations=("number",),
            max_steps=8,
            mask_subtask_actions=True,
        )

    def reset(self, seed):
        self.left = np.random.default_rng(seed).integers(1, 4, size=self.doors)
        self.time = 0
        return self.view()

    def step(self, actions):
        self.time += 1
        pushes = np.bincount(actions, minlength=self.doors + 1)[1:]
        progress = np.minimum(pushes, self.left)
        self.left = self.left - progress
        done = not self.left.any()
        result = (
            self.view(),
            alma.Outcome(
                reward=progress.sum(),
                subtask_rewards=progress.astype(float),
                terminated=done,
                truncated=not done and self.time == 8,
                finished=self.left == 0,
                success=done,
                metrics={"pushes": progress.sum()},
            ),
        )
        return self.go_wrong(*result) if self.trouble and self.time == self.at else result

    def go_wrong(self, view, outcome):
        if self.once:
            try:
                Path(self.once).touch(exist_ok=False)
            except FileExistsError:
                return view, outcome
        return TROUBLES[self.trouble](view, outcome)

    def view(self):
        a, active = self.agents, self.left > 0
        present = np.append(np.ones(a, bool), active)
        entities = np.stack([np.arange(a + self.doors) < a, np.append(np.zeros(a, bool), active)], axis=1)
        return alma.View(
            entities=np.column_stack([entities, np.append(np.zeros(a), self.left / 3)]),
            present=present,
            visible=np.tile(present, (a, 1)),
            subtask=np.append(np.full(a, -1), np.where(active, np.arange(self.doors), -1)),
            active=active,
            available=np.tile(np.append(True, active), (a, 1)),
            target=np.tile(np.append(-1, a + np.arange(self.doors)), (a, 1)),
            relations=np.tile(present, (a, 1))[..., None] * 0.5,
        )

    @property
    def rules(self):
        return {"first": lambda view: jnp.broadcast_to(jnp.argmax(view.active), view.available.shape[:1])}

    @property
    def scripts(self):
        return {"push": lambda key, view, allocation: allocation + 1}

    def scene(self, view):
        return alma.Scene(
            size=(5, 5),
            markers=tuple(alma.Marker("thing", (1.0, i)) if there else None for i, there in enumerate(view.present)),
        )


def _raise(view, outcome):
    raise RuntimeError("the door is stuck")


def _hang(view, outcome):
    time.sleep(1000)


def _die(view, outcome):
    subprocess.Popen(["sleep", "1000"])  # what it has started must end with it
    os.kill(os.getpid(), 9)


TROUBLES: dict[str, Callable] = {
    "raises": _raise,
    "hangs": _hang,
    "dies": _die,
    "nan": lambda view, outcome: (replace(view, entities=np.full_like(view.entities, np.nan)), outcome),
    "infinite reward": lambda view, outcome: (view, replace(outcome, reward=np.inf)),
    "shape": lambda view, outcome: (replace(view, relations=view.relations[..., 0]), outcome),
    "agents": lambda view, outcome: (replace(view, available=view.available[1:]), outcome),
    "dtype": lambda view, outcome: (replace(view, visible=view.visible.astype(int)), outcome),
    "range": lambda view, outcome: (replace(view, target=view.target + 300), outcome),
    "metrics": lambda view, outcome: (view, replace(outcome, metrics={"pulls": 1.0})),
    "pair": lambda view, outcome: view,
    "view": lambda view, outcome: (vars(view), outcome),
    "outcome": lambda view, outcome: (view, 1.0),
    "reward": lambda view, outcome: (view, replace(outcome, reward=[1.0, 2.0])),
}
"""What can go wrong, by name."""


class PlainDoors(alma.Simulator):
    """A simulator that is no dataclass."""

    metrics = ("pushes",)

    def __init__(self, doors: int = 2) -> None:
        self.game = PyDoors(doors=doors)

    @property
    def spec(self):
        return self.game.spec

    def reset(self, seed):
        return self.game.reset(seed)

    def step(self, actions):
        return self.game.step(actions)


class Fickle(PlainDoors):
    """Takes other random numbers than its seed's."""

    def reset(self, seed):
        return self.game.reset(None)
