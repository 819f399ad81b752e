"""`HostTask`: a simulator in plain Python as a task."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array, Int, Key, PRNGKeyArray, UInt32

from alma.simulators.memory import Shape, many, outcome_shapes, view_shapes
from alma.simulators.naming import name_of
from alma.simulators.pool import Pool, PoolOptions, Started
from alma.task.callbacks import called_back
from alma.task.importing import import_by_name
from alma.task.outcome import Outcome
from alma.task.scene import Scene
from alma.task.simulator import Simulator
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import Actions, Allocation, View


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HostState:
    """The task state: a view of the simulator, and which step of which episode it is."""

    view: View
    """The view, in small dtypes."""
    episode: Int[Array, ""]
    """The number of the episode in the pool of simulators."""
    time: Int[Array, ""]
    """Steps since it began."""


@dataclass(frozen=True)
class HostTask(Task[HostState]):
    """A simulator as a task. Copies of it run in worker processes; compiled programs call them at every step.

    A state can be stepped once, since the simulator goes on from it. Stepping it again, or after the simulator has
    failed, gives the same view and an episode that is cut off (`truncated`).
    """

    simulator: str | type[Simulator]
    """The class of the simulator, or its name as `module:Class`."""
    options: Mapping[str, Any] | tuple[tuple[str, Any], ...] = ()
    """The keywords that it is made with; kept as pairs."""
    workers: int = 0
    """Worker processes; 0: one for each core."""
    time_limit: float = 60.0
    """Seconds that a step or a reset may take. A worker that takes longer is ended, and another one started."""
    simulators: int = 4096
    """The most copies of the simulator at once. Evaluation plays at most so many episodes in parallel; with less than
    twice the environments of training, it may cut off episodes that are being trained on."""

    def __post_init__(self) -> None:
        for name, least in (("workers", 0), ("simulators", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not self.time_limit > 0:
            raise ValueError(f"time_limit must be positive, not {self.time_limit}")
        if not isinstance(self.simulator, str):
            object.__setattr__(self, "simulator", name_of(self.simulator))
        object.__setattr__(self, "options", tuple(sorted(dict(self.options).items())))
        _ = self.example  # made now, so that options which do not fit raise an error at once

    # ---- what is known without a worker

    @property
    def example(self) -> Simulator:
        """A copy of the simulator that never plays."""
        return _example(self)

    @property
    def spec(self) -> TaskSpec:
        return self.example.spec

    @property
    def is_pure(self) -> bool:
        return False

    @property
    def parallel(self) -> int:
        return self.simulators

    @property
    def faults(self) -> int:
        return self.pool.faults

    @property
    def heuristics(self) -> Mapping[str, Callable[[HostState], Allocation]]:
        return {name: partial(self._by_rule, rule) for name, rule in self.example.rules.items()}

    def _by_rule(self, rule: Callable[[View], Allocation], state: HostState) -> Allocation:
        return rule(self.view(state))

    @property
    def policies(self) -> Mapping[str, Callable[[PRNGKeyArray, HostState, Allocation], Actions]]:
        return {name: partial(self._by_script, script) for name, script in self.example.scripts.items()}

    def _by_script(
        self,
        script: Callable[[PRNGKeyArray, View, Allocation], Actions],
        key: PRNGKeyArray,
        state: HostState,
        allocation: Allocation,
    ) -> Actions:
        return script(key, self.view(state), allocation)

    def view(self, state: HostState) -> View:
        def widened(leaf: Array) -> Array:
            return leaf.astype(jnp.int32) if jnp.issubdtype(leaf.dtype, jnp.integer) else leaf

        return jax.tree.map(widened, state.view)

    def scene(self, state: HostState) -> Scene | None:
        return self.example.scene(state.view)

    # ---- what workers do

    @property
    def pool(self) -> Pool:
        """The copies of the simulator, in this process's workers."""
        return _pool(self)

    def reset(self, key: PRNGKeyArray) -> HostState:
        return _with_rows(self._reset_rows)(key)

    def step(self, key: PRNGKeyArray, state: HostState, actions: Actions) -> tuple[HostState, Outcome]:
        return _with_rows(self._step_rows)(state, actions)

    def start(self, key: PRNGKeyArray, count: int) -> HostState:
        """N environments in initial states."""
        return self._reset_rows(jax.random.split(key, count))

    def advance(
        self, key: PRNGKeyArray, state: HostState, actions: Int[Array, "N A"]
    ) -> tuple[HostState, HostState, Outcome]:
        """Step N environments; where an episode is over, another one begins, in the same call of the simulator.

        Returns the states that go on, the states that were reached before, and the outcomes.
        """
        count = actions.shape[0]
        seeds = _seeds(jax.random.split(key, count))
        shapes = (self._stepped_shapes(count), self._state_shapes(count))
        host = partial(_advance, self)
        (reached, outcome, lost), now = io_callback(host, shapes, state.episode, state.time, actions, seeds)
        return now, self._reached(state, reached, lost), outcome

    def _reset_rows(self, keys: Key[Array, "N"]) -> HostState:
        if len(keys) > self.simulators:
            raise ValueError(
                f"{self.spec.name}: {len(keys)} copies of the simulator are needed at once, and there are at most "
                f"{self.simulators}: raise `simulators`, or lower collection.environments"
            )
        return io_callback(partial(_start, self), self._state_shapes(len(keys)), _seeds(keys))

    def _step_rows(self, state: HostState, actions: Int[Array, "N A"]) -> tuple[HostState, Outcome]:
        shapes = self._stepped_shapes(actions.shape[0])
        reached, outcome, lost = io_callback(partial(_step, self), shapes, state.episode, state.time, actions)
        return self._reached(state, reached, lost), outcome

    def _reached(self, state: HostState, reached: View, lost: Array) -> HostState:
        """The states after a step; where that has failed, the view is still the one of before."""

        def kept(new: Array, old: Array) -> Array:
            return jnp.where(lost.reshape(-1, *[1] * (new.ndim - 1)), old, new)

        return HostState(jax.tree.map(kept, reached, state.view), state.episode, state.time + 1)

    def _state_shapes(self, count: int) -> HostState:
        number: Any = Shape((), jnp.int32)
        return many(HostState(view_shapes(self.spec), number, number), count)

    def _stepped_shapes(self, count: int) -> tuple[View, Outcome, Shape]:
        outcome = outcome_shapes(self.spec, self.example.metrics)
        return many((view_shapes(self.spec), outcome, Shape((), bool)), count)

    def close(self) -> None:
        """End the worker processes. They are started anew when they are needed again."""
        self.pool.close()


@cache
def _example(task: HostTask) -> Simulator:
    kind = import_by_name("simulator", str(task.simulator))
    if not (isinstance(kind, type) and issubclass(kind, Simulator)):
        raise ValueError(f"{task.simulator!r} must be a class that subclasses alma.Simulator")
    try:
        return kind(**dict(task.options))
    except TypeError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in dict(task.options).items())
        raise ValueError(f"cannot make {kind.__name__}({given}): {error}") from None


@cache
def _pool(task: HostTask) -> Pool:
    workers = task.workers or cores()
    options = PoolOptions(
        str(task.simulator), tuple(dict(task.options).items()), workers, task.simulators, task.time_limit
    )
    return Pool(options, task.example)


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- from within compiled programs: arrays in, arrays out


@called_back
def _start(task: HostTask, seeds: Array) -> HostState:
    return _state(task.pool.start(np.asarray(seeds)))


@called_back
def _step(task: HostTask, episodes: Array, times: Array, actions: Array) -> Any:
    return tuple(task.pool.step(np.asarray(episodes), np.asarray(times), np.asarray(actions)))


@called_back
def _advance(task: HostTask, episodes: Array, times: Array, actions: Array, seeds: Array) -> Any:
    stepped, now = task.pool.advance(*map(np.asarray, (episodes, times, actions, seeds)))
    return tuple(stepped), _state(now)


def _state(started: Started) -> HostState:
    episode, time = jax.tree.map(np.int32, (started.episode, started.time))
    return HostState(started.view, episode, time)


def _seeds(keys: Key[Array, "N"]) -> UInt32[Array, "N"]:
    """A seed for each key, which fits into 31 bits."""
    return jax.vmap(jax.random.bits)(keys) >> 1


def _with_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of rows as one of a single row, which calls it once for all rows under `vmap`."""

    @jax.custom_batching.custom_vmap
    def single(*arguments: Any) -> Any:
        result = function(*jax.tree.map(lambda leaf: leaf[None], arguments))
        return jax.tree.map(lambda leaf: leaf[0], result)

    @single.def_vmap
    def rows(count: int, is_batched: Any, *arguments: Any) -> Any:
        def broadcast(leaf: Array, batched: bool) -> Array:
            return leaf if batched else jnp.broadcast_to(leaf, (count, *leaf.shape))

        result = function(*jax.tree.map(broadcast, arguments, tuple(is_batched)))
        return result, jax.tree.map(lambda _: True, result)

    return single
