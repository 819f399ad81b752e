"""Exploration of actors: how much, and how long. Gradients in portions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import SPEC, random_view

import alma
from alma.actors import actors as module
from alma.actors.actors import ActionExploration, Actors
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.qmix import ActorBatch
from alma.actors.scope import Labelled, Masked
from alma.play.situation import Situation

TASK = alma.make("save-the-city", agents=2)
OPTIONS = ActorOptions(networks=ActorNetworkOptions(width=8, hidden=8))
ACTORS = Actors(TASK.spec, OPTIONS, Masked(TASK.spec), training_period=5)
ENVIRONMENTS, STEPS = 256, 120


@pytest.fixture(scope="module")
def explore():
    """Act again and again in the same situations."""
    state = jax.vmap(TASK.reset)(jax.random.split(jax.random.key(0), ENVIRONMENTS))
    view = jax.jit(jax.vmap(TASK.view))(state)
    allocation = jnp.zeros((ENVIRONMENTS, 2), jnp.int32)
    params = ACTORS.init(jax.random.key(1), view, allocation).params

    @jax.jit
    def play(share, persistence):
        def step(carry, key):
            last_action, explored = carry
            situations = Situation(state, view, allocation, last_action)
            acted = ACTORS.act(params, key, situations, explored, ActionExploration(share, persistence))
            return acted, acted

        begun = allocation - 1, jnp.zeros((ENVIRONMENTS, 2), bool)
        return jax.lax.scan(step, begun, jax.random.split(jax.random.key(2), STEPS))[1]

    return lambda share, persistence: jax.device_get(play(jnp.float32(share), persistence))


@pytest.mark.parametrize("persistence", [0.0, 0.5, 0.9])
def test_the_share_of_random_actions_does_not_depend_on_persistence(explore, persistence):
    _, explored = explore(0.3, persistence)
    assert explored[STEPS // 2 :].mean() == pytest.approx(0.3, abs=0.02)


def test_persistent_agents_repeat_themselves(explore):
    actions, explored = explore(0.3, 0.9)
    both = explored[1:] & explored[:-1]
    assert (actions[1:] == actions[:-1])[both].mean() > 0.9
    actions, explored = explore(0.3, 0.0)
    both = explored[1:] & explored[:-1]
    assert (actions[1:] == actions[:-1])[both].mean() < 0.3


def test_who_always_explores_still_chooses_anew_from_time_to_time(explore):
    actions, explored = explore(1.0, 0.8)
    assert explored.all()
    # A new choice is made with chance 0.2; with five actions or so it is the old one now and then.
    assert 0.1 < (actions[1:] != actions[:-1]).mean() < 0.2


def test_without_exploration_nothing_is_random(explore):
    _, explored = explore(0.0, 0.8)
    assert not explored.any()


@pytest.mark.parametrize("scope", [Masked, Labelled])
def test_gradients_in_portions_are_those_of_the_whole(scope, monkeypatch):
    """Also where portions differ in how much of them counts."""
    networks = ActorNetworkOptions(trunk="attention", width=8, heads=2, hidden=8, mixer="qmix", hyper_width=8)
    actors = Actors(SPEC, ActorOptions(batch=6, popart=True, networks=networks), scope(SPEC), training_period=5)
    view = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[random_view(seed) for seed in range(6)])
    key, target = jax.random.key(2), jax.random.normal(jax.random.key(4), (6, 3))
    allocation, actions = jax.random.randint(key, (6, 3), 0, 3), jax.random.randint(key, (6, 3), 0, 4)
    weights = jnp.ones((6, 3)).at[2:4].set(0).at[4].set([0, 1, 0])
    batch = ActorBatch(view, view, allocation, actions, actions, target, weights)
    params = actors.init(jax.random.key(1), view, allocation).params

    expected = actors.gradients(params, key, batch)
    monkeypatch.setattr(module, "PORTION", 2)
    found = actors.gradients(params, key, batch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected)
