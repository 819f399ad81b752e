"""Simulators in Python, called from within a compiled loop (as alma does) or by a loop in Python around compiled parts.

    python -m benchmarks.host_loop examples.fleet:Fleet examples.foraging:Foraging

Random available actions; both loops step the same worker processes, in turn. The loop in Python compiles nothing but
the choice of actions, which is the least that it could do: training would call several programs at every step.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import alma
from alma.play.environments import advance, start
from alma.simulators.host_task import HostState, HostTask
from alma.task.choice import choose_uniformly

STEPS, REPEATS, BATCH_SIZES = 4_096, 5, (8, 32, 128)
"""Steps per timing, over all environments."""

Loop = Callable[[jax.Array], Any]


def random_actions(task: HostTask, key: jax.Array, state: HostState) -> jax.Array:
    return choose_uniformly(key, jax.vmap(task.view)(state).available)


def compiled_loop(task: HostTask, count: int, steps: int) -> Loop:
    def step(environments: Any, key: jax.Array) -> Any:
        action_key, step_key = jax.random.split(key)
        actions = random_actions(task, action_key, environments.state)
        return advance(task, step_key, environments, actions)[0], None

    def run(key: jax.Array) -> Any:
        return jax.lax.scan(step, start(task, key, count), jax.random.split(key, steps))[0].state.time

    return jax.jit(run)


def python_loop(task: HostTask, count: int, steps: int) -> Loop:
    act = jax.jit(lambda key, state: random_actions(task, key, state))

    def run(key: jax.Array) -> Any:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        now = task.pool.start(rng.integers(2**31, size=count))
        for step_key in jax.random.split(key, steps):
            actions = np.asarray(act(step_key, HostState(now.view, now.episode, now.time)))
            seeds = rng.integers(2**31, size=count)
            _, now = task.pool.advance(now.episode, now.time, actions, seeds)
        return jnp.asarray(now.time)

    return run


def main() -> None:
    print(
        "| simulator | environments | compiled loop, steps/s | loop in Python, steps/s | ratio |\n|---|---|---|---|---|"
    )
    for name in sys.argv[1:]:
        task = alma.make(name)
        for count in BATCH_SIZES:
            loops = [make(task, count, STEPS // count) for make in (compiled_loop, python_loop)]
            rates: list[list[float]] = [[], []]
            for repeat in range(REPEATS + 1):
                for loop, found in zip(loops, rates, strict=True):
                    began = time.perf_counter()
                    jax.block_until_ready(loop(jax.random.key(repeat)))
                    found.append(STEPS / (time.perf_counter() - began))
            inside, outside = (statistics.median(found[1:]) for found in rates)  # the first one compiled
            ratio = statistics.median(a / b for a, b in zip(*(found[1:] for found in rates), strict=True))
            print(f"| {name} | {count} | {inside:,.0f} | {outside:,.0f} | {ratio:.2f} |", flush=True)
        task.close()


if __name__ == "__main__":
    main()
