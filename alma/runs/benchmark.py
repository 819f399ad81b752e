"""Speed measurements of environments and of training on this machine."""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, PartitionSpec

from alma.play.environments import Environments, advance, start
from alma.runs import runtime
from alma.runs.devices import make_program
from alma.simulators.host_task import HostTask
from alma.task.callbacks import raises_plainly
from alma.task.choice import choose_uniformly
from alma.task.task import Task
from alma.task.view import View
from alma.training.trainer import Trainer, TrainState

BATCH_SIZES = (8, 64, 256, 1024)

SIMULATORS = (8, 32, 128)
"""Batch sizes for simulators, which are slower."""

SIMULATOR_STEPS, SIMULATOR_SECONDS = 8192, 1.0
"""The most steps of simulators per timing, over all of them, and about how long it takes where they are slow."""

MINIMUM_SECONDS = 10.0
"""Minimum duration of the timing of training."""


@raises_plainly
def benchmark_environment(
    task: Task, steps: int = 200, repeats: int = 7, report: Callable[[str], None] = print
) -> dict:
    """Environment steps per second with random available actions, including resets and the computation of views.

    Environments are split over all devices; `alma.runs.runtime.one_device_per_core` makes every core a device. Those of
    simulators are on one device, and the simulator's own speed in the same processes is measured as well.
    """
    batches = []
    for size in BATCH_SIZES if task.is_pure else SIMULATORS:
        report(f"{task.spec.name}: {size} environments")
        if isinstance(task, HostTask):
            batches.append(_time_simulators(task, size))
        else:
            batches.append(_time_batch(task, size, steps, repeats))
    best = max(batches, key=lambda batch: batch["steps_per_second"])
    return {
        "task": task.spec.name,
        "steps_per_second": best["steps_per_second"],
        "best_batch": best["environments"],
        "batches": batches,
        "state_bytes": tree_bytes(jax.eval_shape(task.reset, jax.random.key(0))),
        "view_bytes": tree_bytes(jax.eval_shape(lambda key: task.view(task.reset(key)), jax.random.key(0))),
        "compile_seconds": best["compile_seconds"],
        "peak_memory_mb": peak_memory_mb(),
        "device": jax.devices()[0].device_kind,
        "devices": jax.device_count() if task.is_pure else 1,
        "jax": jax.__version__,
    }


@raises_plainly
def benchmark_training(
    trainer: Trainer, repeats: int = 3, report: Callable[[str], None] = print, devices: int = 1
) -> dict:
    """Minutes per million environment steps of the training loop, and on one device also seconds per update of each
    level.
    """
    program = make_program(trainer, devices)
    report(f"{trainer.task.spec.name}, {trainer.method}: compiling")
    began = time.perf_counter()
    state = program.begin([0])
    run = program.compile(trainer.options.updates_per_chunk)
    compile_seconds = time.perf_counter() - began
    report(f"compiled in {compile_seconds:.1f} s; filling replay")
    while not int(state.updates):
        state, _ = run(state)
    seconds, steps, updates = 0.0, 0, 0
    report("training")
    while seconds < MINIMUM_SECONDS or updates < 5:
        before = int(state.env_steps), int(state.updates)
        began = time.perf_counter()
        state, _ = jax.block_until_ready(run(state))
        seconds += time.perf_counter() - began
        steps, updates = steps + int(state.env_steps) - before[0], updates + int(state.updates) - before[1]
    shares = {}
    if isinstance(trainer.task, HostTask):
        report("simulators")
        shares = shares_of_simulators(trainer.task, trainer.options.collection.environments, steps / seconds)
    return {
        "task": trainer.task.spec.name,
        "method": trainer.method,
        "actors": "refil" if trainer.options.actors.imagination else "aqmix",
        "minutes_per_million_steps": round(seconds / steps * 1e6 / 60, 2),
        **shares,
        "steps_per_update": round(steps / updates, 1),
        **(_time_levels(trainer, state, repeats, report) if devices == 1 else {}),
        "replay_mb": round(tree_bytes((state.steps, state.decisions)) / 2**20, 1),
        "gradients_kb": round(_gradient_bytes(trainer, state) / 2**10),
        "compile_seconds": round(compile_seconds, 1),
        "peak_memory_mb": peak_memory_mb(),
        "device": jax.devices()[0].device_kind,
        "devices": devices,
        "jax": jax.__version__,
    }


def _gradient_bytes(trainer: Trainer, state: TrainState) -> int:
    """Size of all gradients of an update, which devices average."""
    return tree_bytes(state.actors.params) + trainer.options.allocator.updates * tree_bytes(state.allocator.params)


def _time_levels(trainer: Trainer, state: TrainState, repeats: int, report: Callable[[str], None]) -> dict[str, float]:
    """Seconds per update of the actors and of the allocator."""
    report("each level")
    actors = partial(trainer.actors.update, view_of=trainer.views, clock=trainer.clock(state))
    allocator = partial(trainer.allocator.update, view_of=trainer.views, clock=trainer.clock(state))
    of_allocator = _median_seconds(allocator, repeats, state.allocator, state.key, state.decisions)
    return {
        "actor_update_seconds": _median_seconds(actors, repeats, state.actors, state.key, state.steps),
        "allocator_update_seconds": round(of_allocator / trainer.options.allocator.updates, 4),
    }


def _median_seconds(function: Callable[..., Any], repeats: int, *arguments: Any) -> float:
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - began)
    return round(statistics.median(times), 4)


class RandomPlay(NamedTuple):
    """A compiled program that plays at random."""

    environments: int
    """The number of environments, the same on every device."""
    compile_seconds: float
    steps_per_second: Callable[[], float]
    """Plays on, and tells how fast that was."""

    def timings(self, rates: list[float]) -> dict[str, Any]:
        return {
            "environments": self.environments,
            "steps_per_second": round(statistics.median(rates)),
            "slowest": round(min(rates)),
            "fastest": round(max(rates)),
            "compile_seconds": round(self.compile_seconds, 2),
        }


def _time_batch(task: Task, environments: int, steps: int, repeats: int) -> dict[str, Any]:
    play = _random_play(task, environments, steps)
    return play.timings([play.steps_per_second() for _ in range(repeats)])


def _random_play(task: Task, environments: int, steps: int) -> RandomPlay:
    devices = min(environments, jax.device_count()) if task.is_pure else 1
    each = environments // devices
    init = _on_each_device(devices, lambda key: _begin(task, each, key))
    run = _on_each_device(devices, partial(_run_random, task, steps))
    carry = init(jax.random.split(jax.random.key(0), devices))
    began = time.perf_counter()
    with runtime.no_compilation_cache():
        compiled = run.lower(carry).compile()
    compile_seconds = time.perf_counter() - began
    carry = jax.block_until_ready(compiled(carry))  # touch the memory once

    def steps_per_second() -> float:
        nonlocal carry
        began = time.perf_counter()
        carry = jax.block_until_ready(compiled(carry))
        return each * devices * steps / (time.perf_counter() - began)

    return RandomPlay(each * devices, compile_seconds, steps_per_second)


def _on_each_device(devices: int, function: Callable[[Any], Any]) -> Any:
    """The function compiled to run on each device, on one row of its input per device."""
    mesh, split = Mesh(jax.devices()[:devices], "device"), PartitionSpec("device")

    def one(row: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[None], function(jax.tree.map(lambda leaf: leaf[0], row)))

    return jax.jit(jax.shard_map(one, mesh=mesh, in_specs=split, out_specs=split, check_vma=False), donate_argnums=0)


def _time_simulators(task: HostTask, environments: int, repeats: int = 5) -> dict[str, Any]:
    """Time a task of simulators, in turn with the simulators in the same processes without anything around them."""
    expected = SIMULATOR_SECONDS * task.pool.race(environments, 4)
    steps = max(4, round(min(SIMULATOR_STEPS, expected) / environments))
    play = _random_play(task, environments, steps)
    rates = [(task.pool.race(environments, steps), play.steps_per_second()) for _ in range(repeats)]
    alone, wrapped = zip(*rates, strict=True)
    return {
        **play.timings(list(wrapped)),
        "workers": task.pool.options.workers,
        "simulator_steps_per_second": round(statistics.median(alone)),
        "kept": round(statistics.median(ours / theirs for theirs, ours in rates), 3),
    }


def shares_of_simulators(task: HostTask, environments: int, steps_per_second: float) -> dict[str, float]:
    """Shares of the time of training at a speed: spent in the simulators, and at most lost to reaching them.

    The second is what random play takes besides the simulators: copying, checking, waiting for processes, and views.
    """
    timed = _time_simulators(task, environments)
    alone = steps_per_second / timed["simulator_steps_per_second"]
    return {
        "share_of_simulators": round(alone, 3),
        "share_of_copying_at_most": round(alone * (1 / timed["kept"] - 1), 3),
    }


Carry = tuple[jax.Array, Environments, View]


def _begin(task: Task, count: int, key: jax.Array) -> Carry:
    environments = start(task, key, count)
    return key, environments, jax.vmap(task.view)(environments.state)


def _run_random(task: Task, steps: int, carry: Carry) -> Carry:
    """Take random steps. The view is part of the carry, so that all of it has to be computed at every step."""

    def body(carry: Carry, _: None) -> tuple[Carry, None]:
        key, environments, view = carry
        key, action_key, step_key = jax.random.split(key, 3)
        actions = choose_uniformly(action_key, view.available)
        environments = advance(task, step_key, environments, actions)[0]
        return (key, environments, jax.vmap(task.view)(environments.state)), None

    return jax.lax.scan(body, carry, length=steps)[0]


def tree_bytes(tree: Any) -> int:
    """Total size in bytes of all arrays of a pytree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def peak_memory_mb() -> int:
    """Peak memory of this process in MiB; 0 where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10))
