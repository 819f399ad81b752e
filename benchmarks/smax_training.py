"""Training speed of VDN and PQN on JaxMARL's SMAX, next to `alma bench train`.

Needs an environment of its own, since alma does not depend on jaxmarl:

    python -m venv /tmp/smax && /tmp/smax/bin/pip install jaxmarl flashbax six
    /tmp/smax/bin/python benchmarks/smax_training.py vdn       # and in turn with it, more than once:
    alma bench train starcraft --set balance=disadvantage --method flat --actors aqmix

8 stalkers and zealots against 9, 8 game loops a step, as ours. JaxMARL's package has the environment and the wrapper
that its learners use, but not the learners: VDN and PQN are written here after them, with feed-forward networks of the
width of ours, shared by all agents, on vectors of observations.

| | trained transitions per environment step |
|---|---|
| `vdn`: double Q-learning from replay, a batch of 512 for every 1024 steps, as ours | 0.5 |
| `pqn`: Q(lambda) on the steps just played, each of them once | 1 |

`--steps-per-update 512` makes that 1 for `vdn`; so does `--collection.steps-per-update 512` in a preset file for ours.
"""

import argparse
import json
import os
import statistics
import time
from typing import Any, NamedTuple

import flashbax
import flax.linen as nn
import jax
import jax.numpy as jnp
import jaxmarl
import optax
from jaxmarl.environments.smax import map_name_to_scenario
from jaxmarl.wrappers.baselines import CTRolloutManager

ENVIRONMENTS, BATCH, WIDTH = 128, 512, 64
BUFFER, WARM_UP = 500_000, 20_000
GAMMA, LAMBDA, EPSILON, TARGET_RATE = 0.98, 0.5, 0.05, 0.01
CHUNK, MINIMUM_SECONDS = 20 * 1024, 10.0


class Network(nn.Module):
    """The values of all actions of an agent."""

    actions: int

    @nn.compact
    def __call__(self, observations):
        x = observations
        for _ in range(2):
            x = nn.relu(nn.LayerNorm()(nn.Dense(WIDTH)(x)))
        return nn.Dense(self.actions)(x)


class Transition(NamedTuple):
    """A step of one environment, as it is stored and trained on."""

    observations: jax.Array
    available: jax.Array
    actions: jax.Array
    reward: jax.Array
    done: jax.Array


class State(NamedTuple):
    key: jax.Array
    environments: Any
    observations: jax.Array
    params: Any
    target: Any
    optimiser: Any
    buffer: Any


class Learner:
    """What VDN and PQN share: playing, and one gradient step."""

    def __init__(self, steps_per_update: int) -> None:
        env = jaxmarl.make("HeuristicEnemySMAX", scenario=map_name_to_scenario("3s5z_vs_3s6z"))
        self.env = CTRolloutManager(env, batch_size=ENVIRONMENTS)
        self.network = Network(self.env.max_action_space)
        self.rule = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1e-3))
        self.length = steps_per_update // ENVIRONMENTS

    def stack(self, of_agents):
        return jnp.stack([of_agents[agent] for agent in self.env.agents], axis=1)

    def available(self, environments):
        return self.stack(self.env.get_valid_actions(environments)) > 0

    def begin(self, key):
        key, env_key, net_key = jax.random.split(key, 3)
        observations, environments = self.env.batch_reset(env_key)
        observations = self.stack(observations)
        params = self.network.init(net_key, observations)
        buffer = self.begin_buffer(self.example(observations, environments))
        target = jax.tree.map(jnp.copy, params)
        return State(key, environments, observations, params, target, self.rule.init(params), buffer)

    def example(self, observations, environments):
        available = self.available(environments)
        actions = jnp.zeros(available.shape[:2], jnp.int32)
        return Transition(observations, available, actions, jnp.zeros(ENVIRONMENTS), jnp.zeros(ENVIRONMENTS, bool))

    def step(self, state, _):
        """Play one step in every environment, epsilon-greedily."""
        key, random_key, chance_key, step_key = jax.random.split(state.key, 4)
        available = self.available(state.environments)
        values = jnp.where(available, self.network.apply(state.params, state.observations), -jnp.inf)
        anything = jax.random.categorical(random_key, jnp.where(available, 0.0, -jnp.inf))
        explores = jax.random.uniform(chance_key, anything.shape) < EPSILON
        actions = jnp.where(explores, anything, jnp.argmax(values, axis=-1))
        of_agents = {agent: actions[:, number] for number, agent in enumerate(self.env.agents)}
        after, environments, reward, done, _ = self.env.batch_step(step_key, state.environments, of_agents)
        row = Transition(state.observations, available, actions, reward["__all__"], done["__all__"])
        return state._replace(key=key, environments=environments, observations=self.stack(after)), row

    def total(self, params, batch):
        """VDN: the values of the team's actions are sums over agents."""
        values = self.network.apply(params, batch.observations)
        return jnp.sum(jnp.take_along_axis(values, batch.actions[..., None], axis=-1)[..., 0], axis=-1)

    def descend(self, state, loss):
        updates, optimiser = self.rule.update(jax.grad(loss)(state.params), state.optimiser)
        return state._replace(params=optax.apply_updates(state.params, updates), optimiser=optimiser)

    def chunk(self, state):
        def iteration(state, _):
            state, rows = jax.lax.scan(self.step, state, length=self.length)
            return self.learn(state, rows), None

        return jax.lax.scan(iteration, state, length=CHUNK // (self.length * ENVIRONMENTS))[0]


class Vdn(Learner):
    """Double Q-learning on transitions from replay."""

    transitions_per_update = BATCH

    def __init__(self, steps_per_update: int) -> None:
        super().__init__(steps_per_update)
        self.replay = flashbax.make_flat_buffer(BUFFER, WARM_UP, BATCH, add_sequences=True, add_batch_size=ENVIRONMENTS)

    def begin_buffer(self, example):
        return self.replay.init(jax.tree.map(lambda leaf: leaf[0], example))

    def learn(self, state, rows):
        by_environment = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), rows)
        key, sample_key = jax.random.split(state.key)
        state = state._replace(key=key, buffer=self.replay.add(state.buffer, by_environment))
        pair = self.replay.sample(state.buffer, sample_key).experience
        now, later = pair.first, pair.second
        greedy = jnp.argmax(
            jnp.where(later.available, self.network.apply(state.params, later.observations), -jnp.inf), axis=-1
        )
        value = self.total(state.target, later._replace(actions=greedy))
        target = now.reward + GAMMA * jnp.where(now.done, 0, value)
        state = self.descend(state, lambda params: jnp.mean((self.total(params, now) - target) ** 2))
        return state._replace(target=optax.incremental_update(state.params, state.target, TARGET_RATE))


class Pqn(Learner):
    """Q(lambda) on the steps just played, without replay and target network."""

    @property
    def transitions_per_update(self):
        return self.length * ENVIRONMENTS

    def begin_buffer(self, example):
        return None

    def learn(self, state, rows):
        def best(observations, available):
            values = jnp.where(available, self.network.apply(state.params, observations), -jnp.inf)
            return jnp.sum(jnp.max(values, axis=-1), axis=-1)

        last = best(state.observations, self.available(state.environments))
        later = jnp.concatenate([best(rows.observations, rows.available)[1:], last[None]])

        def back(following, row):
            reward, done, value = row
            mixed = LAMBDA * following + (1 - LAMBDA) * value
            target = reward + GAMMA * jnp.where(done, 0, mixed)
            return target, target

        _, targets = jax.lax.scan(back, last, (rows.reward, rows.done, later), reverse=True)
        return self.descend(state, lambda params: jnp.mean((self.total(params, rows) - targets) ** 2))


def measure(learner):
    began = time.perf_counter()
    state = learner.begin(jax.random.key(0))
    run = jax.jit(learner.chunk, donate_argnums=0).lower(state).compile()
    compile_seconds = time.perf_counter() - began
    for _ in range(2):  # warm-up, and touching the memory
        state = jax.block_until_ready(run(state))
    rates, seconds = [], 0.0
    while seconds < MINIMUM_SECONDS:
        began = time.perf_counter()
        state = jax.block_until_ready(run(state))
        seconds += time.perf_counter() - began
        rates.append(CHUNK / (time.perf_counter() - began))
    return {
        "algorithm": type(learner).__name__.lower(),
        "steps_per_second": round(statistics.median(rates)),
        "minutes_per_million_steps": round(1e6 / 60 / statistics.median(rates), 2),
        "transitions_per_step": learner.transitions_per_update / (learner.length * ENVIRONMENTS),
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(state.params)),
        "compile_seconds": round(compile_seconds, 1),
        "cores": len(os.sched_getaffinity(0)),
        "jax": jax.__version__,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("algorithm", choices=["vdn", "pqn"])
    parser.add_argument("--steps-per-update", type=int, default=1024)
    asked = parser.parse_args()
    print(json.dumps(measure({"vdn": Vdn, "pqn": Pqn}[asked.algorithm](asked.steps_per_update))))
