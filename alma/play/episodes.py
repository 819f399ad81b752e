"""Playing whole episodes without exploration."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from alma.play.decisions import InForce, apply_where, decisions_due, nothing_in_force, record_actions, renew
from alma.play.situation import Situation, situations_of
from alma.play.summary import Results, join
from alma.play.team import Team, TeamParams
from alma.play.trees import select, zeros_like
from alma.task.callbacks import raises_plainly
from alma.task.outcome import Outcome
from alma.task.task import Task
from alma.task.view import NOBODY, View, team_size

logger = logging.getLogger("alma")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Episodes:
    """N episodes played in parallel. An episode that is over no longer changes."""

    key: Key[Array, "N"]
    state: Any
    in_force: InForce
    done: Bool[Array, "N"]
    success: Bool[Array, "N"]
    total: Float[Array, "N"]
    """The undiscounted return so far."""
    length: Int[Array, "N"]
    """Steps so far."""
    switches: Float[Array, "N"]
    """How often an agent was moved to another subtask while its own was still active."""
    unattended: Float[Array, "N"]
    """The number of active subtasks without an agent, summed over steps."""
    metrics: dict[str, Float[Array, "N"]]
    """The task's metrics, summed over steps."""


def begin(task: Task, team: Team, params: TeamParams, keys: Key[Array, "N"]) -> Episodes:
    """N episodes in their initial states; the first decision is made in the first step."""
    count, spec = len(keys), task.spec
    reset_keys, key = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    state = jax.vmap(task.reset)(reset_keys)
    in_force = nothing_in_force(count, spec.agents, spec.subtasks, team.play_period, strategy=None)
    situations = situations_of(state, jax.vmap(task.view)(state), in_force)
    advise = jax.vmap(partial(team.actors.advise_best, params["actors"]))
    outcome = jax.eval_shape(jax.vmap(task.step), key, state, in_force.last_action)[1]
    zeros = jnp.zeros(count)
    return Episodes(
        key=key,
        state=state,
        in_force=replace(in_force, strategy=zeros_like(jax.eval_shape(advise, key, situations))),
        done=jnp.zeros(count, bool),
        success=jnp.zeros(count, bool),
        total=zeros,
        length=jnp.zeros(count, jnp.int32),
        switches=zeros,
        unattended=zeros,
        metrics={name: jnp.zeros(value.shape, value.dtype) for name, value in outcome.metrics.items()},
    )


class PlayedStep(NamedTuple):
    """One step of N episodes, recorded."""

    view: View
    before_actions: Episodes
    """The episodes after the decisions and before the actions of this step."""
    outcome: Outcome


def play_step(task: Task, team: Team, params: TeamParams, episodes: Episodes) -> tuple[Episodes, PlayedStep]:
    """Play one step of N episodes; also returns a record of it."""
    view = jax.vmap(task.view)(episodes.state)
    before_actions = decide(team, params, episodes, view)
    after, outcome = act(task, team, params, before_actions, view)
    return select(episodes.done, episodes, after), PlayedStep(view, before_actions, outcome)


def deciding_keys(key: PRNGKeyArray) -> Key[Array, "3"]:
    """Keys for the rest of the episode, the allocator and the coach."""
    return jax.random.split(key, 3)


def acting_keys(key: PRNGKeyArray) -> Key[Array, "3"]:
    """Keys for the rest of the episode, the actors and the task."""
    return jax.random.split(key, 3)


def decide(team: Team, params: TeamParams, episodes: Episodes, view: View) -> Episodes:
    """Make decisions, of the allocator and the coach, where they are due."""
    keys = jax.vmap(deciding_keys)(episodes.key)
    situations = situations_of(episodes.state, view, episodes.in_force)

    def fresh(portion: Int[Array, ""], rows: tuple[Key[Array, "n 3"], Situation]) -> Any:
        keys, situations = rows
        allocate = partial(team.allocator.greedy, params["allocator"])
        advise = partial(team.actors.advise_best, params["actors"])
        return jax.vmap(allocate)(keys[:, 1], situations), jax.vmap(advise)(keys[:, 2], situations)

    before = episodes.in_force
    due = decisions_due(before, view, team.play_period)
    allocation, strategy = apply_where(
        due & ~episodes.done, fresh, (keys, situations), (before.allocation, before.strategy)
    )
    in_force = renew(before, view, due, allocation, strategy)
    return update_statistics(replace(episodes, key=keys[:, 0], in_force=in_force), before.allocation, view)


def update_statistics(episodes: Episodes, before: Int[Array, "N A"], view: View) -> Episodes:
    """Update the statistics of allocations: switches and unattended subtasks."""
    allocation = episodes.in_force.allocation
    still_active = jnp.take_along_axis(view.active, before, axis=-1)
    switched = (allocation != before) & still_active & (before != NOBODY) & (allocation != NOBODY)
    attended = jnp.any(allocation[:, :, None] == jnp.arange(view.active.shape[-1]), axis=1)
    return replace(
        episodes,
        switches=episodes.switches + jnp.sum(switched, axis=-1),
        unattended=episodes.unattended + jnp.sum(view.active & ~attended, axis=-1),
    )


def act(task: Task, team: Team, params: TeamParams, episodes: Episodes, view: View) -> tuple[Episodes, Outcome]:
    """Let the actors act and step the task."""
    keys = jax.vmap(acting_keys)(episodes.key)
    situations = situations_of(episodes.state, view, episodes.in_force)
    actions = jax.vmap(partial(team.actors.greedy, params["actors"]))(keys[:, 1], situations)
    state, outcome = jax.vmap(task.step)(keys[:, 2], episodes.state, actions)
    after = replace(
        episodes,
        key=keys[:, 0],
        state=state,
        in_force=record_actions(episodes.in_force, actions),
        done=outcome.done,
        success=outcome.success,
        total=episodes.total + outcome.reward,
        length=episodes.length + 1,
        metrics={name: episodes.metrics[name] + value for name, value in outcome.metrics.items()},
    )
    return after, outcome


@partial(jax.jit, static_argnums=(0, 1))
def _play_batch(task: Task, team: Team, params: TeamParams, keys: Key[Array, "N"]) -> tuple[Episodes, Int[Array, "N"]]:
    episodes = begin(task, team, params, keys)
    sizes = jax.vmap(lambda state: team_size(task.view(state), task.spec.agents))(episodes.state)

    def goes_on(episodes: Episodes) -> Bool[Array, ""]:
        # The limit only matters for tasks that break their contract by never ending: evaluation must not hang.
        return ~jnp.all(episodes.done) & (jnp.max(episodes.length) < task.spec.max_steps)

    return jax.lax.while_loop(goes_on, lambda now: play_step(task, team, params, now)[0], episodes), sizes


MOST_EPISODES = 10_000_000
"""Most episodes that are played at a time; their results are kept in memory."""


EVALUATION_SEED = 1_000_000
"""Default seed of evaluations and replays: not one of the small numbers that training usually starts from."""


def check_episodes(count: int, most: int = MOST_EPISODES) -> None:
    """Raise a ValueError unless the number of episodes lies between 1 and `most`."""
    if not 1 <= count <= most:
        raise ValueError(f"episodes must lie between 1 and {most}, not {count}")


def episode_keys(seed: int, count: int) -> Key[Array, "{count}"]:
    """The random keys of the first `count` episodes of a seed."""
    return jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(count))


@raises_plainly
def play_episodes(
    task: Task,
    team: Team,
    params: TeamParams,
    episodes: int,
    seed: int = 0,
    parallel: int = 256,
    on_progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Play whole episodes, `parallel` at a time, or as many as the task allows.

    Episode i of a seed does not depend on the batch size, except for rounding: floating-point sums are computed in
    another order in batches of another size, which may decide a close battle. `on_progress` is called with the number
    of episodes played so far, and how many of them were solved.
    """
    check_episodes(episodes)
    parallel = min(parallel, episodes, task.parallel or episodes)
    keys = episode_keys(seed, -(-episodes // parallel) * parallel)
    batches: list[Results] = []
    solved, faults = 0, task.faults
    for first in range(0, episodes, parallel):
        played, sizes = _play_batch(task, team, params, keys[first : first + parallel])
        rows = slice(min(parallel, episodes - first))
        columns = {
            "success": played.success,
            "total": played.total,
            "length": played.length,
            "team_size": sizes,
            "switches": played.switches,
            "unattended": played.unattended,
            "metrics": played.metrics,
        }
        batches.append(Results(**jax.tree.map(itemgetter(rows), jax.device_get(columns))))
        solved += int(np.sum(batches[-1].success))
        if on_progress:
            on_progress(first + len(batches[-1].success), solved)
    if lost := task.faults - faults:
        logger.warning("%d episodes were cut off because the simulator failed: they count as not solved", lost)
    return join(batches)
