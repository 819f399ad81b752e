"""Playing whole episodes, and what they amount to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from alma.nn.trees import select, zeros_like
from alma.play.decisions import decision_due, only_where
from alma.play.situation import Situation
from alma.play.summary import Results, join
from alma.play.team import Players
from alma.task.outcome import Outcome
from alma.task.task import Task
from alma.task.view import NOBODY, Actions, Allocation, View, team_size


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Episode:
    """An episode under way. It stands still once it is over. Many of them side by side are one with rows."""

    key: PRNGKeyArray
    state: Any
    allocation: Allocation
    strategy: Float[Array, "A H"] | None
    """What a coach has advised; None where there is no coach."""
    last_action: Actions
    since_decision: Int[Array, ""]
    active: Bool[Array, "M"]
    """Active subtasks at the last step, to notice that one finished or appeared."""
    done: Bool[Array, ""]
    success: Bool[Array, ""]
    total: Float[Array, ""]
    """The return: rewards added up, undiscounted."""
    length: Int[Array, ""]
    switches: Float[Array, ""]
    """Times that an agent was sent from one subtask to another although its own was still active."""
    unattended: Float[Array, ""]
    """Active subtasks without an agent, added up over steps."""
    metrics: dict[str, Float[Array, ""]]


def begin(task: Task, players: Players, key: PRNGKeyArray) -> Episode:
    """Draw an initial state; the first step will allocate."""
    reset_key, key = jax.random.split(key)
    state = task.reset(reset_key)
    nobody = jnp.full(task.spec.agents, NOBODY, jnp.int32)
    outcome = jax.eval_shape(task.step, key, state, nobody)[1]
    situation = Situation(state, task.view(state), nobody, nobody)
    return Episode(
        key=key,
        state=state,
        allocation=nobody,
        strategy=zeros_like(jax.eval_shape(players.coach, players.params, key, situation)),
        last_action=nobody,
        since_decision=jnp.int32(players.period),
        active=jnp.zeros(task.spec.subtasks, bool),
        done=jnp.asarray(False),
        success=jnp.asarray(False),
        total=jnp.float32(0),
        length=jnp.int32(0),
        switches=jnp.float32(0),
        unattended=jnp.float32(0),
        metrics={name: jnp.zeros(value.shape, value.dtype) for name, value in outcome.metrics.items()},
    )


class Played(NamedTuple):
    """One step of N episodes, as it came about."""

    view: View
    decided: Episode
    """When allocations were made, and nobody had acted yet."""
    outcome: Outcome


def play_step(task: Task, players: Players, episodes: Episode) -> tuple[Episode, Played]:
    """One step of N episodes."""
    view = jax.vmap(task.view)(episodes.state)
    decided = decide(players, episodes, view)
    after, outcome = jax.vmap(partial(act, task, players))(decided, view)
    return select(episodes.done, episodes, after), Played(view, decided, outcome)


def situation_of(episode: Episode, view: View) -> Situation:
    """What there is to decide on in an episode, or in each of many."""
    return Situation(episode.state, view, episode.allocation, episode.last_action, episode.strategy)


def deciding_keys(key: PRNGKeyArray) -> Key[Array, "3"]:
    """For what comes later, the allocator, and the coach."""
    return jax.random.split(key, 3)


def acting_keys(key: PRNGKeyArray) -> Key[Array, "3"]:
    """For what comes later, the actors, and the task."""
    return jax.random.split(key, 3)


def decide(players: Players, episodes: Episode, view: View) -> Episode:
    """Renew allocations, and what a coach advises, where a decision is due."""
    keys = jax.vmap(deciding_keys)(episodes.key)
    due = jax.vmap(partial(decision_due, period=players.period))(
        episodes.since_decision, active_before=episodes.active, active=view.active
    )

    def fresh(portion: Int[Array, ""], rows: tuple[Key[Array, "n 3"], Situation]) -> Any:
        keys, situations = rows
        allocation = jax.vmap(partial(players.allocator, players.params))(keys[:, 1], situations)
        return allocation, jax.vmap(partial(players.coach, players.params))(keys[:, 2], situations)

    in_force = (episodes.allocation, episodes.strategy)
    inputs = (keys, situation_of(episodes, view))
    allocation, strategy = only_where(due & ~episodes.done, fresh, inputs, in_force)
    decided = replace(
        episodes,
        key=keys[:, 0],
        allocation=allocation,
        strategy=strategy,
        since_decision=jnp.where(due, 0, episodes.since_decision),
        active=view.active,
    )
    return jax.vmap(observe)(decided, episodes.allocation, view)


def observe(episode: Episode, before: Allocation, view: View) -> Episode:
    """Take down what an allocation does."""
    allocation = episode.allocation
    torn_away = (allocation != before) & view.active[before] & (before != NOBODY) & (allocation != NOBODY)
    attended = jnp.any(allocation[:, None] == jnp.arange(view.active.shape[0]), axis=0)
    return replace(
        episode,
        switches=episode.switches + jnp.sum(torn_away),
        unattended=episode.unattended + jnp.sum(view.active & ~attended),
    )


def act(task: Task, players: Players, episode: Episode, view: View) -> tuple[Episode, Outcome]:
    """Let the actors have their step."""
    key, action_key, step_key = acting_keys(episode.key)
    actions = players.policy(players.params, action_key, situation_of(episode, view))
    state, outcome = task.step(step_key, episode.state, actions)
    acted = replace(
        episode,
        key=key,
        state=state,
        last_action=actions,
        since_decision=episode.since_decision + 1,
        done=outcome.done,
        success=outcome.success,
        total=episode.total + outcome.reward,
        length=episode.length + 1,
        metrics={name: episode.metrics[name] + value for name, value in outcome.metrics.items()},
    )
    return acted, outcome


@partial(jax.jit, static_argnums=0)
def _play_batch(task: Task, players: Players, keys: Key[Array, "N"]) -> tuple[Episode, Int[Array, "N"]]:
    episodes = jax.vmap(partial(begin, task, players))(keys)
    sizes = jax.vmap(lambda state: team_size(task.view(state), task.spec.agents))(episodes.state)

    def goes_on(episode: Episode) -> Bool[Array, ""]:
        # The limit matters to tasks that break their contract only: they must not hang.
        return ~jnp.all(episode.done) & (jnp.max(episode.length) < task.spec.max_steps)

    return jax.lax.while_loop(goes_on, lambda now: play_step(task, players, now)[0], episodes), sizes


def check_episodes(count: int) -> None:
    """Complain about a number of episodes that cannot be played."""
    if count < 1:
        raise ValueError(f"episodes must be at least 1, not {count}")


def episode_keys(seed: int, count: int) -> Key[Array, "{count}"]:
    """Where each of the first episodes of a seed begins."""
    return jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(count))


def play_episodes(
    task: Task,
    players: Players,
    episodes: int,
    seed: int = 0,
    parallel: int = 256,
    on_progress: Callable[[int, Results], None] | None = None,
) -> Results:
    """Play whole episodes, `parallel` at a time. Episode i of a seed is the same whatever the batch, but for rounding:
    networks add up in another order in other batches, which may tip a close battle."""
    check_episodes(episodes)
    parallel = min(parallel, episodes)
    keys = episode_keys(seed, -(-episodes // parallel) * parallel)
    batches: list[Results] = []
    for first in range(0, episodes, parallel):
        played, sizes = _play_batch(task, players, keys[first : first + parallel])
        rows = slice(min(parallel, episodes - first))
        columns = (
            played.success,
            played.total,
            played.length,
            sizes,
            played.switches,
            played.unattended,
            played.metrics,
        )
        batches.append(Results(*jax.tree.map(itemgetter(rows), jax.device_get(columns))))
        if on_progress:
            on_progress(first + len(batches[-1].success), join(batches))
    return join(batches)
