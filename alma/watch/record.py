"""Playing episodes and keeping all that can be told of them: what happened, and what the players thought."""

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from alma.play.episodes import (
    Episode,
    acting_keys,
    begin,
    check_episodes,
    deciding_keys,
    episode_keys,
    play_step,
    situation_of,
)
from alma.play.situation import Considered, Ratings
from alma.play.team import Players
from alma.task.outcome import Outcome
from alma.task.task import Task
from alma.task.view import View


class Moment(NamedTuple):
    """One step: what was seen and decided, why, and what came of it."""

    state: Any
    view: View
    allocation: Int[Array, "A"]
    decided: Bool[Array, ""]
    """Whether the allocation was made in this step."""
    actions: Int[Array, "A"]
    outcome: Outcome
    ratings: Ratings | None
    considered: Considered | None


@dataclass(frozen=True)
class Recording:
    """One episode of T steps. The moment after the last of them is kept too, under the last allocation."""

    moments: Moment
    """T + 1 rows of everything; of the last one only the state, the view and the allocation mean anything."""
    length: int
    success: bool
    total: float
    """The return."""
    period: int
    """Steps between decisions, at the most."""

    @property
    def decisions(self) -> list[int]:
        """Steps at which an allocation was made."""
        return np.flatnonzero(self.moments.decided[: self.length]).tolist()

    @property
    def completions(self) -> list[tuple[int, int]]:
        """(step, subtask): finished, well or badly, in this step."""
        finished = self.moments.view.active & self.moments.outcome.finished
        return [(int(step), int(subtask)) for step, subtask in np.argwhere(finished[: self.length])]

    @property
    def deaths(self) -> list[tuple[int, int]]:
        """(step, agent): gone after this step."""
        present = self.agents_present
        return [(int(step), int(agent)) for step, agent in np.argwhere(present[:-1] & ~present[1:])]

    @property
    def agents_present(self) -> Bool[np.ndarray, "moments A"]:
        return np.asarray(self.moments.view.present)[:, : self.moments.allocation.shape[1]]

    def state(self, step: int) -> Any:
        """The state before a step; before step T is after the last one."""
        return jax.tree.map(itemgetter(step), self.moments.state)

    def why(self, step: int) -> str:
        """What led to the decision at a step."""
        if step == 0:
            return "the episode begins"
        before, now = (np.asarray(self.moments.view.active)[t] for t in (step - 1, step))
        if np.array_equal(before, now):
            return f"{self.period} steps have passed" if self.period > 1 else "a step has passed"
        return "a subtask has finished" if np.any(before & ~now) else "a subtask has appeared"


def record(task: Task, players: Players, episodes: int = 1, seed: int = 0) -> list[Recording]:
    """Play the first episodes of a seed, the same that `play_episodes` plays, and keep them."""
    check_episodes(episodes)
    last, moments = jax.device_get(_play(task, players, episode_keys(seed, episodes)))
    return [_cut(players, *jax.tree.map(itemgetter(i), (last, moments))) for i in range(episodes)]


def _cut(players: Players, last: Episode, moments: Moment) -> Recording:
    """Leave out what comes after the end."""
    length = int(last.length)
    kept = jax.tree.map(itemgetter(slice(length + 1)), moments)
    return Recording(kept, length, bool(last.success), float(last.total), players.period)


@partial(jax.jit, static_argnums=0)
def _play(task: Task, players: Players, keys: Key[Array, "N"]) -> tuple[Episode, Moment]:
    """N episodes to their ends, and all their moments, (N, steps). An episode that is over stands still."""
    episodes = jax.vmap(partial(begin, task, players))(keys)
    steps = task.spec.max_steps + 1  # one more, to see the last state
    last, moments = jax.lax.scan(lambda now, _: _watch(task, players, now), episodes, length=steps)
    return last, jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), moments)


def _watch(task: Task, players: Players, episodes: Episode) -> tuple[Episode, Moment]:
    """One step, and what the players thought of it: they are asked with the keys they have decided with."""
    after, (view, decided, outcome) = play_step(task, players, episodes)
    decision_key = jax.vmap(deciding_keys)(episodes.key)[:, 1]
    action_key = jax.vmap(acting_keys)(decided.key)[:, 1]
    considered = jax.vmap(partial(players.weigh, players.params))(
        decision_key, situation_of(episodes, view), decided.allocation
    )
    ratings = jax.vmap(partial(players.rate, players.params))(action_key, situation_of(decided, view))
    return after, Moment(
        state=episodes.state,
        view=view,
        allocation=jnp.asarray(decided.allocation),
        decided=(decided.since_decision == 0) & ~episodes.done,
        actions=after.last_action,
        outcome=outcome,
        ratings=ratings,
        considered=considered,
    )
