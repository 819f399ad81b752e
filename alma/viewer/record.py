"""Recording episodes: all states, decisions and outcomes, and the values that decisions were based on."""

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from alma.play.episodes import (
    Episodes,
    acting_keys,
    begin,
    check_episodes,
    deciding_keys,
    episode_keys,
    play_step,
)
from alma.play.situation import ActionValues, Candidates, situations_of
from alma.play.team import Team, TeamParams
from alma.task.callbacks import raises_plainly
from alma.task.outcome import Outcome
from alma.task.task import Task
from alma.task.view import View


class Frame(NamedTuple):
    """One recorded step."""

    state: Any
    view: View
    allocation: Int[Array, "A"]
    decided: Bool[Array, ""]
    """Whether the allocation was made in this step."""
    actions: Int[Array, "A"]
    outcome: Outcome
    action_values: ActionValues | None
    """The utilities that actions were chosen by; None for actors without utilities."""
    candidates: Candidates | None
    """The allocations that the allocator chose from; None without a critic."""


@dataclass(frozen=True)
class Recording:
    """One recorded episode of T steps, and its final state."""

    frames: Frame
    """T + 1 rows. In the last one only the state, the view and the allocation (that of the last step) are valid."""
    length: int
    success: bool
    total: float
    """The undiscounted return."""
    period: int
    """Maximum number of steps between two allocations."""

    @property
    def decisions(self) -> list[int]:
        """Steps at which an allocation was made."""
        return np.flatnonzero(self.frames.decided[: self.length]).tolist()

    @property
    def completions(self) -> list[tuple[int, int]]:
        """(step, subtask) of each subtask that finished, successfully or not, in this step."""
        finished = self.frames.view.active & self.frames.outcome.finished
        return [(int(step), int(subtask)) for step, subtask in np.argwhere(finished[: self.length])]

    @property
    def deaths(self) -> list[tuple[int, int]]:
        """(step, agent) of each agent that is absent after this step."""
        present = self.agents_present
        return [(int(step), int(agent)) for step, agent in np.argwhere(present[:-1] & ~present[1:])]

    @property
    def agents_present(self) -> Bool[np.ndarray, "steps A"]:
        """Which agents are present, by step."""
        return np.asarray(self.frames.view.present)[:, : self.frames.allocation.shape[1]]

    def state(self, step: int) -> Any:
        """The state before a step; `state(T)` is the final one."""
        return jax.tree.map(itemgetter(step), self.frames.state)

    def why(self, step: int) -> str:
        """Why a decision was due at a step."""
        if step == 0:
            return "the episode begins"
        before, now = (np.asarray(self.frames.view.active)[t] for t in (step - 1, step))
        if np.array_equal(before, now):
            return f"{self.period} steps have passed" if self.period > 1 else "a step has passed"
        return "a subtask has finished" if np.any(before & ~now) else "a subtask has appeared"


MOST_STEPS = 200_000
"""Most steps that are recorded at a time; all that is known of each is kept in memory."""


@raises_plainly
def record(task: Task, team: Team, params: TeamParams, episodes: int = 1, seed: int = 0) -> list[Recording]:
    """Record the first episodes of a seed, the same ones that `play_episodes` plays."""
    check_episodes(episodes)
    if episodes * task.spec.max_steps > MOST_STEPS:
        raise ValueError(
            f"{episodes} episodes of up to {task.spec.max_steps} steps are too many to record: choose fewer episodes, "
            f"or a smaller max_steps, for at most {MOST_STEPS} steps in all"
        )
    last, frames = jax.device_get(_play(task, team, params, episode_keys(seed, episodes)))
    return [_cut(team, *jax.tree.map(itemgetter(i), (last, frames))) for i in range(episodes)]


def _cut(team: Team, last: Episodes, frames: Frame) -> Recording:
    """The recording of one episode, without the frames after its end."""
    length = int(last.length)
    kept = jax.tree.map(itemgetter(slice(length + 1)), frames)
    return Recording(kept, length, bool(last.success), float(last.total), team.play_period)


@partial(jax.jit, static_argnums=(0, 1))
def _play(task: Task, team: Team, params: TeamParams, keys: Key[Array, "N"]) -> tuple[Episodes, Frame]:
    """Play N episodes to their ends; also returns all their frames, (N, steps)."""
    episodes = begin(task, team, params, keys)
    steps = task.spec.max_steps + 1  # one more, to see the last state
    last, frames = jax.lax.scan(lambda now, _: _watch(task, team, params, now), episodes, length=steps)
    return last, jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), frames)


def _watch(task: Task, team: Team, params: TeamParams, episodes: Episodes) -> tuple[Episodes, Frame]:
    """Play one step; its frame explains decisions by evaluating allocator and actors again, with the same keys."""
    after, (view, before_actions, outcome) = play_step(task, team, params, episodes)
    decision_key = jax.vmap(deciding_keys)(episodes.key)[:, 1]
    action_key = jax.vmap(acting_keys)(before_actions.key)[:, 1]
    candidates = jax.vmap(partial(team.allocator.explain_allocation, params["allocator"]))(
        decision_key, situations_of(episodes.state, view, episodes.in_force), before_actions.in_force.allocation
    )
    action_values = jax.vmap(partial(team.actors.explain_actions, params["actors"]))(
        action_key, situations_of(before_actions.state, view, before_actions.in_force)
    )
    return after, Frame(
        state=episodes.state,
        view=view,
        allocation=jnp.asarray(before_actions.in_force.allocation),
        decided=(before_actions.in_force.since_decision == 0) & ~episodes.done,
        actions=after.in_force.last_action,
        outcome=outcome,
        action_values=action_values,
        candidates=candidates,
    )
