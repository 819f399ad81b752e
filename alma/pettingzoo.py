"""Tasks as PettingZoo environments, to train agents with other libraries: `alma.pettingzoo.parallel_env`.

Each agent is given one vector, the mask of its available actions, and in `info` its subtask. The vector holds one row
for every entity, the agents first; `ParallelTask.row` names the numbers of a row.
"""

import base64
import io
import tempfile
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from PIL import Image

from alma.allocators.rules import RuleAllocator, allocate_nobody, allocator_by_name
from alma.play.decisions import InForce, decisions_due, nothing_in_force, record_actions, renew
from alma.play.situation import Situation, Strategy
from alma.play.team import NOTHING_LEARNED, PlayingAllocator, TeamParams
from alma.runs.policy import Policy, check_fits
from alma.task.callbacks import raises_plainly
from alma.task.outcome import Outcome
from alma.task.registry import make
from alma.task.task import Task
from alma.task.view import NOBODY, Allocation, View, available_under, subtask_of_entities
from alma.viewer.picture import draw_map

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError:
    raise ImportError("alma.pettingzoo needs the extra `pettingzoo`: pip install 'alma-marl[pettingzoo]'") from None

RewardOf = Literal["team", "subtask"]
RenderMode = Literal["human", "rgb_array"]
RENDERING = {"render_modes": ["human", "rgb_array"], "is_parallelizable": True}


def parallel_env(
    task: Task | str,
    *,
    allocator: Policy | str | None = None,
    period: int = 5,
    reward: RewardOf = "team",
    fixed_team: bool = False,
    render_mode: RenderMode | None = None,
    **options: Any,
) -> "ParallelTask":
    """A task as a PettingZoo `ParallelEnv`. `task` is a task, a registered name or `module:Class` with its `options`.

    `allocator` gives every agent a subtask, anew whenever a subtask finishes or appears and at the latest after
    `period` steps: `heuristic`, `heuristic:NAME`, `random`, `fixed:SUBTASKS`, or a policy, which has a period of its
    own; None gives nobody a subtask. `reward` is what agents are given: the global reward of the whole team, or that
    of their subtask. `fixed_team` keeps agents that are absent or dead, for libraries that need the same agents at all
    times: they see zeros, and all they can do is action 0, which changes nothing.
    """
    if isinstance(task, Task) and options:
        raise ValueError(f"a task that is built already takes no options: {', '.join(options)}")
    built = task if isinstance(task, Task) else make(task, **options)
    return ParallelTask(built, _allocation_of(built, allocator, period), reward, fixed_team, render_mode)


@dataclass(frozen=True)
class Allocating:
    """The allocator of an environment, and how often it allocates."""

    allocator: PlayingAllocator
    period: int
    allocates: bool
    """False if nobody is ever given a subtask."""

    def __post_init__(self) -> None:
        if self.period < 1:
            raise ValueError(f"the allocation period must be at least 1 step, not {self.period}")


def _allocation_of(task: Task, allocator: Policy | str | None, period: int) -> tuple[Allocating, TeamParams]:
    if isinstance(allocator, Policy):
        check_fits(allocator.task.spec, task.spec)
        team = allocator.team
        return Allocating(team.allocator, team.play_period, team.allocator.allocates), allocator.params
    if allocator is None:
        return Allocating(RuleAllocator(allocate_nobody, allocates=False), period, False), NOTHING_LEARNED
    return Allocating(allocator_by_name(task, allocator), period, True), NOTHING_LEARNED


# ---- the compiled part: one step of one episode


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Moment:
    """An episode between two steps: the allocation has been made, and the agents are about to act."""

    key: PRNGKeyArray
    state: Any
    view: View
    in_force: InForce
    """Of one environment: a leading axis of length 1."""
    decided: Bool[Array, ""]
    """Whether the allocation was made just now."""
    rows: Float[Array, "A E K"]
    """The observation of every agent: one row of numbers for each entity, which `row_names` names."""
    allowed: Bool[Array, "A U"]
    """Available actions, under the allocation if there is one."""


@partial(jax.jit, static_argnums=(0, 1))
def _begin(task: Task, allocating: Allocating, params: TeamParams, key: PRNGKeyArray) -> Moment:
    reset_key, key = jax.random.split(key)
    spec = task.spec
    in_force = nothing_in_force(1, spec.agents, spec.subtasks, allocating.period, strategy=None)
    return _decide(task, allocating, params, key, task.reset(reset_key), in_force)


@partial(jax.jit, static_argnums=(0, 1))
def _step(
    task: Task, allocating: Allocating, params: TeamParams, moment: Moment, actions: Int[Array, "A"]
) -> tuple[Moment, Outcome]:
    key, step_key = jax.random.split(moment.key)
    state, outcome = task.step(step_key, moment.state, jnp.maximum(actions, 0))
    in_force = record_actions(moment.in_force, actions[None])
    return _decide(task, allocating, params, key, state, in_force), outcome


def _decide(
    task: Task, allocating: Allocating, params: TeamParams, key: PRNGKeyArray, state: Any, before: InForce
) -> Moment:
    """Renew the allocation if a decision is due, and compute observations and action masks."""
    key, allocation_key = jax.random.split(key)
    view = task.view(state)
    views: View = jax.tree.map(lambda leaf: leaf[None], view)
    situation = Situation(state, view, before.allocation[0], before.last_action[0])
    fresh = allocating.allocator.greedy(params["allocator"], allocation_key, situation)
    due = decisions_due(before, views, allocating.period)
    allocation = jnp.where(due, fresh, before.allocation[0])
    masked = task.spec.mask_subtask_actions and allocating.allocates
    return Moment(
        key=key,
        state=state,
        view=view,
        in_force=renew(before, views, due, allocation[None], None),
        decided=due[0],
        rows=_rows(view, allocation),
        allowed=available_under(view, allocation) if masked else view.available,
    )


def row_names(task: Task) -> tuple[str, ...]:
    """Names of the numbers that describe one entity to one agent."""
    spec = task.spec
    return (
        "is visible",
        "is myself",
        "belongs to my subtask",
        *(f"belongs to subtask {subtask}" for subtask in range(spec.subtasks)),
        "belongs to an active subtask",
        *spec.features,
        *spec.relations,
    )


def _rows(view: View, allocation: Allocation) -> Float[Array, "A E K"]:
    """The observation of every agent: one row for each entity, zeros for entities that the agent does not see."""
    agents, entities = view.visible.shape
    subtask = subtask_of_entities(view, allocation)
    belongs = subtask[:, None] == jnp.arange(view.active.shape[0])
    mine = (subtask == allocation[:, None]) & (allocation[:, None] != NOBODY)
    of_each = jnp.concatenate([belongs, jnp.any(belongs & view.active, axis=1)[:, None], view.entities], axis=1)
    columns = [
        jnp.stack([view.visible, jnp.eye(agents, entities, dtype=bool), mine], axis=-1),
        jnp.broadcast_to(of_each, (agents, *of_each.shape)),
        view.relations,
    ]
    rows = jnp.concatenate([column.astype(jnp.float32) for column in columns], axis=-1)
    return jnp.where(view.visible[..., None], rows, 0)


# ---- the environment


class ParallelTask(ParallelEnv):
    """A task as a PettingZoo environment. Made by `parallel_env`."""

    def __init__(
        self,
        task: Task,
        allocating: tuple[Allocating, TeamParams],
        reward: RewardOf = "team",
        fixed_team: bool = False,
        render_mode: RenderMode | None = None,
    ) -> None:
        if reward not in ("team", "subtask"):
            raise ValueError(f"reward must be `team` or `subtask`, not {reward!r}")
        if reward == "subtask" and not allocating[0].allocates:
            raise ValueError("rewards of subtasks need an allocator: parallel_env(task, allocator='heuristic')")
        if render_mode not in (None, "human", "rgb_array"):
            raise ValueError(f"render_mode must be human, rgb_array or None, not {render_mode!r}")
        self.task, self.reward, self.fixed_team, self.render_mode = task, reward, fixed_team, render_mode
        self._allocating, self._params = allocating
        spec = task.spec
        self.metadata = {**RENDERING, "name": f"{spec.name}_v0"}
        self.possible_agents = [f"agent_{i}" for i in range(spec.agents)]
        self.agents: list[str] = []
        self.row = row_names(task)
        self._numbers = {agent: i for i, agent in enumerate(self.possible_agents)}
        size = spec.entities * len(self.row)
        self._observation_spaces = {agent: _observation_space(size, len(spec.actions)) for agent in self._numbers}
        self._action_spaces = {agent: spaces.Discrete(len(spec.actions)) for agent in self._numbers}
        self.state_space = spaces.Box(-np.inf, np.inf, (spec.entities * (2 + len(spec.features)),), np.float32)
        self._nothing_yet = _no_outcome(task)
        self._key = jax.random.key(int(np.random.SeedSequence().generate_state(1)[0]))
        self._moment: Moment | None = None
        self._page: Path | None = None

    def observation_space(self, agent: str) -> spaces.Space:
        """The vector of an agent (`observation`) and the mask of its available actions (`action_mask`)."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self._action_spaces[agent]

    @raises_plainly
    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode. The same seed gives the same episodes from here on; `options` are ignored."""
        if seed is not None:
            self._key = jax.random.key(seed)
        self._key, key = jax.random.split(self._key)
        moment = _begin(self.task, self._allocating, self._params, key)
        self._moment = jax.device_get(moment)
        present = self._present()
        self.agents = [agent for agent, i in self._numbers.items() if present[i]]
        if self.render_mode == "human":
            self.render()
        return self._observations(self.agents), self._infos(self.agents, self._nothing_yet)

    @raises_plainly
    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Take one action for every live agent. One that is not available is replaced by the agent's first that is."""
        if not self.agents:
            raise ValueError("the episode is over, or has not begun: call reset() first")
        missing = sorted(set(self.agents) - set(actions))
        if missing:
            raise ValueError(f"every live agent needs an action: {', '.join(missing)} got none")
        before, alive = self.now, self.agents
        taken = self._available_actions(actions)
        after, outcome = _step(self.task, self._allocating, self._params, before, taken)
        self._moment, outcome = jax.device_get((after, outcome))
        ended, cut = bool(outcome.terminated), bool(outcome.truncated)
        present = self._present()
        dead = {agent: not present[self._numbers[agent]] for agent in alive}
        terminated = {agent: ended or (dead[agent] and not cut) for agent in alive}
        truncated = dict.fromkeys(alive, cut)
        rewards = self._rewards(alive, before.in_force.allocation[0], outcome)
        self.agents = [agent for agent in alive if not (ended or cut or dead[agent])]
        if self.render_mode == "human":
            self.render()
        return self._observations(alive), rewards, terminated, truncated, self._infos(alive, outcome)

    @property
    def now(self) -> Moment:
        """The state of the episode, its view and its allocation, as NumPy arrays."""
        if self._moment is None:
            raise ValueError("the episode has not begun: call reset() first")
        return self._moment

    def state(self) -> Float[np.ndarray, "..."]:
        """All entities, for centralised critics: present, subtask (as a share of all; 0: none) and features of each."""
        now, subtasks = self.now, self.task.spec.subtasks
        subtask = np.asarray(subtask_of_entities(now.view, now.in_force.allocation[0]))
        columns: list[Any] = [now.view.present[:, None], (subtask[:, None] + 1) / subtasks, now.view.entities]
        return np.concatenate(columns, axis=1).astype(np.float32).ravel()

    def _present(self) -> Bool[np.ndarray, "A"]:
        """Mask of the agents that observe and act: those present, or all agents of a fixed team."""
        return np.asarray(self.now.view.present)[: len(self._numbers)] | self.fixed_team

    def _available_actions(self, actions: Mapping[str, Any]) -> Int[np.ndarray, "A"]:
        taken = np.full(len(self._numbers), NOBODY, np.int32)
        for agent in self.agents:
            i, action = self._numbers[agent], int(actions[agent])
            if not 0 <= action < len(self.task.spec.actions):
                raise ValueError(f"{agent} has no action {action}: choose from 0 to {len(self.task.spec.actions) - 1}")
            allowed = self.now.allowed[i]
            taken[i] = action if allowed[action] or not allowed.any() else np.argmax(allowed)
        return taken

    def _rewards(self, agents: list[str], allocation: Allocation, outcome: Outcome) -> dict[str, float]:
        if self.reward == "team":
            return dict.fromkeys(agents, float(outcome.reward))
        subtasks = {agent: int(allocation[self._numbers[agent]]) for agent in agents}
        return {agent: 0.0 if k == NOBODY else float(outcome.subtask_rewards[k]) for agent, k in subtasks.items()}

    def _observations(self, agents: list[str]) -> dict[str, dict[str, Any]]:
        rows, allowed = self.now.rows, self.now.allowed.astype(np.int8)
        allowed[:, 0] |= ~allowed.any(axis=1)  # of a fixed team: a mask must allow something
        return {
            agent: {"observation": rows[i].ravel(), "action_mask": allowed[i]}
            for agent, i in self._numbers.items()
            if agent in agents
        }

    def _infos(self, agents: list[str], outcome: Outcome) -> dict[str, dict[str, Any]]:
        """For each agent its subtask; for all of them the allocation, the active subtasks and what the step brought.

        Keys and shapes are always the same, so that libraries can store them in arrays.
        """
        allocation = self.now.in_force.allocation[0]
        shared = {
            "allocation": allocation,
            "active_subtasks": self.now.view.active,
            "reward": float(outcome.reward),
            "subtask_rewards": outcome.subtask_rewards,
            "success": bool(outcome.success),
            **{f"metrics/{name}": float(value) for name, value in outcome.metrics.items()},
        }
        return {agent: {"subtask": int(allocation[self._numbers[agent]]), **shared} for agent in agents}

    # ---- pictures

    def render(self) -> np.ndarray | None:
        """The map as a picture (`rgb_array`), or shown in a page that reloads itself (`human`)."""
        if self.render_mode == "rgb_array":
            return np.asarray(self._picture())
        if self.render_mode == "human":
            self._write_page()
        return None

    def _picture(self) -> Image.Image:
        now = self.now
        scene = self.task.scene(now.state)
        if scene is None:
            raise ValueError(f"the task {self.task.spec.name!r} cannot be drawn: it has no scene")
        return draw_map(scene, now.in_force.allocation[0], now.view.subtask, now.view.active)

    def _write_page(self) -> None:
        """Write the picture into a page, and open that in a browser the first time."""
        png = io.BytesIO()
        self._picture().save(png, "PNG")
        image = base64.b64encode(png.getvalue()).decode()
        page = self._page or Path(tempfile.mkdtemp(prefix="alma-")) / "now.html"
        title = self.task.spec.name
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0.5"><title>{title}</title>'
            f'<img alt="{title}" src="data:image/png;base64,{image}">\n'
        )
        if self._page is None:
            self._page = page
            webbrowser.open(page.as_uri())

    def close(self) -> None:
        """Delete the page, if there is one."""
        if self._page is not None:
            self._page.unlink(missing_ok=True)
            self._page.parent.rmdir()
            self._page = None


def _no_outcome(task: Task) -> Outcome:
    """The outcome that `reset` reports in its infos: zeros."""
    key, actions = jax.random.key(0), jax.ShapeDtypeStruct((task.spec.agents,), jnp.int32)
    _, outcome = jax.eval_shape(task.step, key, jax.eval_shape(task.reset, key), actions)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), outcome)


def _observation_space(size: int, actions: int) -> spaces.Space:
    return spaces.Dict(
        {
            "observation": spaces.Box(-np.inf, np.inf, (size,), np.float32),
            "action_mask": spaces.Box(0, 1, (actions,), np.int8),
        }
    )


class Player:
    """Plays a policy in a `ParallelTask`, under the allocation of the environment."""

    def __init__(self, policy: Policy, env: ParallelTask) -> None:
        check_fits(policy.task.spec, env.task.spec)
        if policy.team.actors.knows_subtasks and not env._allocating.allocates:
            raise ValueError("the policy acts on subtasks: parallel_env(task, allocator=policy) gives them")
        self.policy, self.env = policy, env
        self._strategy: Strategy = None
        self._key = jax.random.key(0)

    def actions(self) -> dict[str, int]:
        """The best actions of all live agents."""
        now = self.env.now
        if self.policy.team.actors.is_coached and now.decided:
            self._key, key = jax.random.split(self._key)
            self._strategy = self.policy.advise(now.view, key)
        allocation, last_action = now.in_force.allocation[0], jnp.asarray(now.in_force.last_action[0])
        taken = self.policy.act(now.view, allocation, last_action, self._strategy)
        return {agent: int(taken[self.env._numbers[agent]]) for agent in self.env.agents}
