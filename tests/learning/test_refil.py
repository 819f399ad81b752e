"""Imagined groups, and the loss from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from views import random_view

from alma.learning.actors import Actors
from alma.learning.qmix import ActorBatch
from alma.learning.refil import imagine_groups, refil_loss
from alma.networks.scope import Flat, Masked
from alma.presets import ActorNetworkOptions, ActorOptions
from alma.task import TaskSpec

SPEC = TaskSpec(
    name="random",
    agents=3,
    entities=7,
    subtasks=3,
    actions=tuple("abcd"),
    features=tuple("fghij"),
    relations=tuple("rs"),
    max_steps=10,
    mask_subtask_actions=False,
)
KEY = jax.random.key(0)
WINDOWS = 64


def test_groups_split_every_attended_pair():
    groups = imagine_groups(KEY, WINDOWS, 3, 7)
    attends = jax.random.bernoulli(jax.random.key(1), 0.7, (WINDOWS, 3, 7))
    within, across = np.moveaxis(np.asarray(attends[:, None] & groups), 1, 0)
    assert not (within & across).any()
    np.testing.assert_array_equal(within | across, attends)


def test_groups_are_groups():
    """Who is with me is with those who are with me, and everybody with themselves; sizes vary."""
    within = np.asarray(imagine_groups(KEY, WINDOWS, 3, 7))[:, 0]
    assert within[:, np.arange(3), np.arange(3)].all()
    for a in range(3):
        for b in range(3):
            together = within[:, a, b]
            np.testing.assert_array_equal(within[together, a], within[together, b])
            np.testing.assert_array_equal(within[~together, a], ~within[~together, b])
    assert len(set(within[:, 0].sum(axis=1).tolist())) >= 6


def actors(imagination, mixer="qmix", window=1, scope=Masked):
    networks = ActorNetworkOptions(trunk="attention", width=8, heads=2, hidden=8, mixer=mixer, hyper_width=8)
    options = ActorOptions(batch=4, window=window, imagination=imagination, networks=networks)
    return Actors(SPEC, options, scope(SPEC), period=5)


def a_batch(rows=4):
    view = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[random_view(seed) for seed in range(rows)])
    allocation = jax.random.randint(jax.random.key(2), (rows, 3), 0, 3)
    actions = jax.random.randint(jax.random.key(3), (rows, 3), 0, 4)
    target = jax.random.normal(jax.random.key(4), (rows, 3))
    return ActorBatch(view, view, allocation, actions, actions, target, jnp.ones((rows, 3)))


def test_without_imagination_it_is_plain_qmix():
    batch = a_batch()
    plain = actors(0.0)
    params = plain.init(KEY, batch.view, batch.allocation).params
    loss, figures = plain.loss(params, KEY, batch)
    assert float(loss) == float(figures["actor_loss"])
    mixed, figures = actors(0.5).loss(params, KEY, batch)
    assert float(mixed) == pytest.approx(0.5 * figures["actor_loss"] + 0.5 * figures["imagined_loss"])
    assert float(figures["actor_loss"]) == pytest.approx(float(loss), rel=1e-6)
    whole, figures = actors(1.0).loss(params, KEY, batch)
    assert float(whole) == float(figures["imagined_loss"]) != float(loss)


def test_an_imagined_group_of_everybody_adds_the_utilities_of_who_sees_nothing():
    """If all are in one group, what is within is the plain utility and across there is nothing to see."""
    low = actors(0.5, mixer="sum")
    batch = a_batch()
    params = low.init(KEY, batch.view, batch.allocation).params
    sight = low.networks.look(KEY, batch.view, batch.allocation)
    everybody = jnp.stack([jnp.ones((4, 3, 7), bool), jnp.zeros((4, 3, 7), bool)], axis=1)
    blind = low.networks.utilities(params, sight._replace(attends=everybody[:, 1]), batch.last_action)
    seeing = low.networks.utilities(params, sight, batch.last_action)
    chosen = np.take_along_axis(np.asarray(blind + seeing), np.asarray(batch.action)[..., None], axis=-1)[..., 0]
    mixed = np.einsum("ba,bak->bk", chosen, sight.members)
    expected = float(np.mean((mixed - batch.target) ** 2))
    assert float(refil_loss(params, low.networks, batch, sight, everybody)) == pytest.approx(expected, rel=1e-5)


def test_a_window_keeps_its_groups():
    """Rows of a batch are windows over and over: the loss of two equal steps of every window is that of one."""
    one, two = actors(1.0, window=1), actors(1.0, window=2)
    batch = a_batch()
    params = one.init(KEY, batch.view, batch.allocation).params
    doubled = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), batch)
    assert float(two.loss(params, KEY, doubled)[0]) == pytest.approx(float(one.loss(params, KEY, batch)[0]), rel=1e-5)


def test_it_works_without_subtasks_too():
    flat = actors(0.5, scope=Flat)
    batch = a_batch()
    params = flat.init(KEY, batch.view, batch.allocation).params
    whole = ActorBatch(**{**vars(batch), "target": batch.target[:, :1], "counts": batch.counts[:, :1]})
    loss, figures = flat.loss(params, KEY, whole)
    assert np.isfinite(loss)
    assert figures["imagined_loss"] > 0
