"""The fast city does what the plain one does, step by step, under random and scripted play."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import reference
from helpers.city import RULES, SCALE

from alma.task.choice import choose_uniformly
from alma.tasks.save_the_city import SaveTheCity

TASK = SaveTheCity(RULES)


def play(seed, scripted):
    """One episode with some illegal actions among the random ones."""
    script, heuristic = TASK.policies["scripted"], TASK.heuristics["nearest-useful"]

    def body(state, key):
        keys = jax.random.split(key, 4)
        view = TASK.view(state)
        legal = choose_uniformly(keys[0], view.available)
        wild = jax.random.randint(keys[1], legal.shape, 0, 12)
        random = jnp.where(jax.random.uniform(keys[2], legal.shape) < 0.8, legal, wild)
        actions = jnp.where(scripted, script(keys[0], state, heuristic(state)), random)
        after, outcome = TASK.step(keys[3], state, actions)
        return after, (state, view.available, actions, after, outcome)

    reset_key, key = jax.random.split(jax.random.key(seed))
    return jax.lax.scan(body, TASK.reset(reset_key), jax.random.split(key, 150))[1]


PLAY = jax.jit(play)


def agents_of(state, t):
    count = (state.agent_type[t] >= 0).sum()
    return [[int(state.agent_type[t, i]), *state.agent_position[t, i].tolist()] for i in range(count)]


def buildings_of(state, t):
    return [
        {
            "x": int(state.building_position[t, i, 0]),
            "y": int(state.building_position[t, i, 1]),
            "fast": state.building_type[t, i] == 0,
            "health": float(state.health[t, i]),
            "fire": float(state.fire[t, i]),
            "interval": int(state.fire_interval[t, i]),
            "timer": int(state.fire_timer[t, i]),
        }
        for i in range((state.building_type[t] >= 0).sum())
    ]


@pytest.mark.parametrize("scripted", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_step_by_step(seed, scripted):
    state, available, actions, after, outcome = jax.device_get(PLAY(seed, scripted))
    length = int(np.argmax(outcome.terminated | outcome.truncated)) + 1
    for t in range(length):
        agents, buildings = agents_of(state, t), buildings_of(state, t)
        chosen = actions[t, : len(agents)].tolist()
        for who in range(len(agents)):
            assert set(np.flatnonzero(available[t, who])) == reference.legal(agents, buildings, who)
        expected, rewards = reference.work(agents, buildings, chosen)
        for i, (building, reward) in enumerate(zip(expected, rewards, strict=True)):
            assert after.health[t, i] == pytest.approx(building["health"], abs=1e-5)
            assert after.fire[t, i] == pytest.approx(building["fire"], abs=1e-5)
            assert after.fire_timer[t, i] == building["timer"]
            assert outcome.subtask_rewards[t, i] == pytest.approx(reward * SCALE, abs=1e-4)
        assert_moves(agents, reference.destinations(agents, buildings, chosen), agents_of(after, t))
        finished = [building["health"] in (0, 1) for building in expected]
        assert outcome.terminated[t] == all(finished)
        assert outcome.success[t] == all(building["health"] == 1 for building in expected)


def assert_moves(before, goals, after):
    """Everybody is where it wanted to be; of several that wanted one cell, one is, the others stayed."""
    for goal in set(goals):
        wanting = [who for who, wish in enumerate(goals) if wish == goal]
        arrived = [who for who in wanting if tuple(after[who][1:]) == goal]
        assert len(arrived) == 1
        assert all(after[who] == before[who] for who in wanting if who not in arrived)
