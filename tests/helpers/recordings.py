"""Recordings made up by hand, so that everything a page must show is known."""

from dataclasses import dataclass

import numpy as np

from alma import NOBODY, Outcome, Task, TaskSpec, View
from alma.play.situation import ActionValues, Candidates
from alma.task.scene import Line, Marker, Place, Scene
from alma.viewer.page_data import Side, TeamLabels
from alma.viewer.record import Frame, Recording

LENGTH = 12
AGENTS, SUBTASKS, ENTITIES = 3, 2, 5
ACTIONS = ("wait", "north", "dig")
DECISIONS = (0, 5, 8)
TAKEN = {0: [0, 0, 1], 5: [0, 1, 1], 8: [1, 1, NOBODY]}
RUNNER_UP = [1, 0, 0]


@dataclass(frozen=True)
class Digging(Task):
    """Three agents dig two holes; only its scenes matter."""

    drawn: bool = True
    digger: str = "digger"

    @property
    def spec(self):
        return TaskSpec(
            name="dig</script>ging",
            agents=AGENTS,
            entities=ENTITIES,
            subtasks=SUBTASKS,
            actions=ACTIONS,
            features=("depth",),
            relations=(),
            max_steps=LENGTH,
            mask_subtask_actions=False,
        )

    def reset(self, key): ...

    def step(self, key, state, actions): ...

    def view(self, state): ...

    def scene(self, state):
        if not self.drawn:
            return None
        alive = state["alive"]
        agents = [
            Marker(self.digger, (1.0 + state["time"] / 4, 2.0 + 2 * i), letter="D", bars={"health": 1 - i / 4})
            for i in range(AGENTS)
        ]
        holes = [
            Marker("hole", (8.0, 2.0 + 4 * i), "square", 0.5, icons={"flame": 0.5, "clock": 0.3, "tick": float(i == 0)})
            for i in range(SUBTASKS)
        ]
        return Scene(
            size=(10, 8),
            markers=(*(agent if there else None for agent, there in zip(agents, alive, strict=True)), *holes),
            places=(Place((2, 7), 0.5, "shed"), Place((8, 2), 1, "begun", 0)),
            lines=(Line(0, 3), Line(1, 0, "help")),
            subtask="hole",
            standing=("dug" if state["time"] > 7 else "begun", "begun"),
        )


def action_values():
    """Agent 1 prefers `dig` (2.5) to `wait` (-1.25) and cannot go north; it sees only itself and hole 1."""
    steps = LENGTH + 1
    values = np.tile(np.array([[0.5, 1.0, 2.0], [-1.25, 9.0, 2.5], [0.25, 0.5, 0.75]]), (steps, 1, 1))
    available = np.tile(np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], bool), (steps, 1, 1))
    sees = np.ones((steps, AGENTS, ENTITIES), bool)
    sees[:, 1] = [False, True, False, False, True]
    return ActionValues(values, available, sees)


def candidates():
    """Values at every decision: 3.5 for the allocation taken, 3.25 for the second (proposed twice), 1 for a third."""
    rows = [[TAKEN.get(step, TAKEN[8]), TAKEN.get(step, TAKEN[8]), RUNNER_UP, RUNNER_UP, [1, 0, 1]]
            for step in range(LENGTH + 1)]  # fmt: skip
    return Candidates(np.array(rows), np.tile(np.array([3.5, 3.5, 3.25, 3.25, 1.0]), (LENGTH + 1, 1)))


def recording(learned=True):
    """A recording in which agent 2 dies and hole 0 is finished in step 7."""
    steps = np.arange(LENGTH + 1)
    allocation = np.array([TAKEN[max(d for d in DECISIONS if d <= step)] for step in steps])
    present = np.ones((LENGTH + 1, ENTITIES), bool)
    present[8:, 2] = False
    active = np.stack([steps < 8, steps < LENGTH], axis=1)
    view = View(
        entities=np.zeros((LENGTH + 1, ENTITIES, 1), np.float32),
        present=present,
        visible=np.ones((LENGTH + 1, AGENTS, ENTITIES), bool),
        subtask=np.tile([-1, -1, -1, 0, 1], (LENGTH + 1, 1)),
        active=active,
        available=np.ones((LENGTH + 1, AGENTS, len(ACTIONS)), bool),
        target=np.tile([-1, -1, 4], (LENGTH + 1, AGENTS, 1)),
        relations=np.zeros((LENGTH + 1, AGENTS, ENTITIES, 0), np.float32),
    )
    outcome = Outcome(
        reward=np.full(LENGTH + 1, 0.5, np.float32),
        subtask_rewards=np.tile(np.array([0.25, -0.125], np.float32), (LENGTH + 1, 1)),
        terminated=steps == LENGTH - 1,
        truncated=np.zeros(LENGTH + 1, bool),
        finished=np.stack([steps >= 7, steps >= LENGTH - 1], axis=1),
        success=steps == LENGTH - 1,
        metrics={},
    )
    frames = Frame(
        state={"time": steps, "alive": present[:, :AGENTS]},
        view=view,
        allocation=allocation,
        decided=np.isin(steps, DECISIONS),
        actions=np.full((LENGTH + 1, AGENTS), 2),
        outcome=outcome,
        action_values=action_values() if learned else None,
        candidates=candidates() if learned else None,
    )
    return Recording(frames, LENGTH, True, 6.0, period=5)


def side(label="runs/one", learned=True, episodes=1):
    return Side(TeamLabels(label, "alma"), [recording(learned)] * episodes)


@dataclass(frozen=True)
class Crowd(Digging):
    """A task with many entities and actions that change all the time, for the largest possible page."""

    agents: int = 8
    things: int = 9
    steps: int = 150
    actions: int = 14

    @property
    def spec(self):
        return TaskSpec(
            name="crowd",
            agents=self.agents,
            entities=self.agents + self.things,
            subtasks=3,
            actions=tuple(f"action {i}" for i in range(self.actions)),
            features=("x",),
            relations=(),
            max_steps=self.steps,
            mask_subtask_actions=False,
        )

    def scene(self, state):
        things = [
            Marker("somebody", (x, y), bars={"health": x / 32, "shield": y / 32}) for x, y in state["at"].tolist()
        ]
        return Scene((32, 32), tuple(things), lines=tuple(Line(i, 0) for i in range(self.agents)))


def crowd(task, seed=0):
    """A recording of random numbers, which no column can shorten; a decision among 25 candidates every third step."""
    draw, spec = np.random.default_rng(seed), task.spec
    rows, agents, entities, actions = spec.max_steps + 1, spec.agents, spec.entities, len(spec.actions)
    allocations = draw.integers(0, 3, (rows, 25, agents))
    view = View(
        entities=np.zeros((rows, entities, 1), np.float32),
        present=np.ones((rows, entities), bool),
        visible=np.ones((rows, agents, entities), bool),
        subtask=np.tile(np.arange(entities) % 3, (rows, 1)),
        active=np.ones((rows, 3), bool),
        available=np.ones((rows, agents, actions), bool),
        target=np.tile(np.arange(actions), (rows, agents, 1)),
        relations=np.zeros((rows, agents, entities, 0), np.float32),
    )
    outcome = Outcome(
        reward=draw.normal(size=rows),
        subtask_rewards=draw.normal(size=(rows, 3)),
        terminated=np.zeros(rows, bool),
        truncated=np.zeros(rows, bool),
        finished=np.zeros((rows, 3), bool),
        success=np.zeros(rows, bool),
        metrics={},
    )
    sees = draw.random((rows, agents, entities)) < 0.5
    frames = Frame(
        state={"at": draw.uniform(0, 32, (rows, entities, 2))},
        view=view,
        allocation=allocations[:, 0],
        decided=np.arange(rows) % 3 == 0,
        actions=draw.integers(0, actions, (rows, agents)),
        outcome=outcome,
        action_values=ActionValues(draw.normal(size=(rows, agents, actions)), view.available, sees),
        candidates=Candidates(allocations, draw.normal(size=(rows, 25))),
    )
    return Recording(frames, spec.max_steps, False, 0.0, period=3)
