"""`HostTask`: a simulator in plain Python as a task."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array, Int, Key, PRNGKeyArray, UInt32

from alma.simulators.memory import Shape, many, outcome_shapes, view_shapes
from alma.simulators.pool import Pool, PoolOptions, Started
from alma.task.callbacks import called_back
from alma.task.importing import import_by_name
from alma.task.outcome import Outcome
from alma.task.registry import Entry
from alma.task.scene import Scene
from alma.task.simulator import Simulator
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import Actions, Allocation, View


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HostState:
    """What is known here of a simulator's state."""

    view: View
    """What can be seen, in small dtypes."""
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
    return kind(**dict(task.options))


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


# ---- by name


def name_of(kind: type) -> str:
    """How worker processes find a class: `module:Class`."""
    module = kind.__module__
    if module == "__main__":
        program = getattr(sys.modules["__main__"], "__file__", None)
        if program is None:
            raise ValueError(f"worker processes cannot find {kind.__qualname__}: put it in a module, and import it")
        module = Path(program).stem  # its folder is on the path of modules
    return f"{module}:{kind.__qualname__}"


def entry_of(name: str, kind: type[Simulator]) -> Entry:
    """How to build the task of a simulator: its options are the fields of the simulator, and those of `HostTask`."""
    if missing := sorted(kind.__abstractmethods__):
        raise ValueError(f"{name} lacks {', '.join(missing)}: a simulator must define them")
    own: list[str] = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    if taken := [option for option in own if option in HOST_OPTIONS]:
        raise ValueError(f"{name}: `{taken[0]}` is an option of all simulators: give this field another name")

    def build(options: Any) -> HostTask:
        chosen = {option: getattr(options, option) for option in own}
        return HostTask(name, chosen, **{option: getattr(options, option) for option in HOST_OPTIONS})

    return Entry(_options_type(kind), build)


HOST_OPTIONS = ("workers", "time_limit", "simulators")
"""Options of all simulators."""


def _options_type(kind: type[Simulator]) -> type:
    """A dataclass of the simulator's own fields and the options of all simulators.

    It goes by the name of `HostTask`, so that the explanations of its options are found there.
    """
    added = [(option.name, option.type, option.default) for option in fields(HostTask) if option.name in HOST_OPTIONS]
    doc = "" if (kind.__doc__ or "").startswith(f"{kind.__name__}(") else kind.__doc__
    bases, frozen = ((kind,), kind.__dataclass_params__.frozen) if is_dataclass(kind) else ((), True)
    namespace = {"__doc__": doc, "__module__": __name__}
    return make_dataclass(HostTask.__name__, added, bases=bases, namespace=namespace, frozen=frozen)
