"""Environment steps per second of JaxMARL's SMAX, measured as `alma bench env` measures ours.

Needs an environment of its own, since alma does not depend on jaxmarl:

    python -m venv /tmp/smax && /tmp/smax/bin/pip install jaxmarl
    /tmp/smax/bin/python benchmarks/smax.py        # and in turn with it, more than once:
    alma bench env starcraft --set balance=disadvantage

8 stalkers and zealots against 9, 8 game loops a step, as ours; random available actions, restarts, observations of
every agent; environments shared out over one device per core. `heuristic` has its own script play the enemy, as in
our base defence; `both` has random actions play both sides.
"""

import json
import os
import statistics
import time

import jax
import jax.numpy as jnp

jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))

import jaxmarl  # noqa: E402
from jax.sharding import Mesh, PartitionSpec  # noqa: E402
from jaxmarl.environments.smax import map_name_to_scenario  # noqa: E402

STEPS, REPEATS, BATCH_SIZES = 200, 5, (64, 256, 1024)
ENVIRONMENTS = {"heuristic": "HeuristicEnemySMAX", "both": "SMAX"}


def run_random(env, carry):
    """Steps with random actions; observations are carried along, so that all of them have to be computed."""

    def act(key, state):
        available = env.get_avail_actions(state)
        keys = jax.random.split(key, len(env.agents))
        return {
            agent: jax.random.categorical(one, jnp.where(available[agent] > 0, 0.0, -1e9))
            for agent, one in zip(env.agents, keys, strict=True)
        }

    def body(carry, _):
        key, state, observations = carry
        count = jax.tree.leaves(state)[0].shape[0]
        key, act_key, step_key = jax.random.split(key, 3)
        actions = jax.vmap(act)(jax.random.split(act_key, count), state)
        observations, state, *_ = jax.vmap(env.step)(jax.random.split(step_key, count), state, actions)
        return (key, state, observations), None

    return jax.lax.scan(body, carry, length=STEPS)[0]


def begin(env, count, key):
    observations, state = jax.vmap(env.reset)(jax.random.split(key, count))
    return key, state, observations


def on_each_device(function):
    mesh, split = Mesh(jax.devices(), "device"), PartitionSpec("device")

    def one(row):
        return jax.tree.map(lambda leaf: leaf[None], function(jax.tree.map(lambda leaf: leaf[0], row)))

    return jax.jit(jax.shard_map(one, mesh=mesh, in_specs=split, out_specs=split, check_vma=False), donate_argnums=0)


def measure(name, size):
    env = jaxmarl.make(name, scenario=map_name_to_scenario("3s5z_vs_3s6z"))
    devices = jax.device_count()
    run = on_each_device(lambda carry: run_random(env, carry))
    carry = on_each_device(lambda key: begin(env, size // devices, key))(jax.random.split(jax.random.key(0), devices))
    carry = jax.block_until_ready(run(carry))
    rates = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        carry = jax.block_until_ready(run(carry))
        rates.append(size * STEPS / (time.perf_counter() - began))
    return {"environments": size, "steps_per_second": round(statistics.median(rates))}


for side, name in ENVIRONMENTS.items():
    print(json.dumps({"enemy": side, "batches": [measure(name, size) for size in BATCH_SIZES]}), flush=True)
