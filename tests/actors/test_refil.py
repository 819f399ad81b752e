"""Imagined groups, and the loss from them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import SPEC, random_view

from alma.actors.actors import Actors
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.qmix import ActorBatch, qmix_loss
from alma.actors.refil import imagine_groups, refil_loss
from alma.actors.scope import Flat, Masked

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


def actors(imagination, mixer="qmix", window=1, scope=Masked, trunk="attention"):
    networks = ActorNetworkOptions(trunk=trunk, width=8, heads=2, hidden=8, mixer=mixer, hyper_width=8)
    options = ActorOptions(batch=4, window=window, imagination=imagination, networks=networks)
    return Actors(SPEC, options, scope(SPEC), training_period=5)


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
    loss, metrics = plain.loss(params, KEY, batch)
    sight = plain.networks.look(KEY, batch.view, batch.allocation)
    values = plain.networks.utilities(params, sight, batch.last_action)
    chosen = jnp.take_along_axis(values, batch.action[..., None], axis=-1)[..., 0]
    mixed = plain.networks.mix(params, chosen, sight, batch.last_action)
    by_hand = np.mean((np.asarray(mixed) - np.asarray(batch.target)) ** 2)
    assert float(loss) == pytest.approx(float(by_hand), rel=1e-5)
    mixed, metrics = actors(0.5).loss(params, KEY, batch)
    assert float(mixed) == pytest.approx(0.5 * metrics["actor_loss"] + 0.5 * metrics["imagined_loss"])
    assert float(metrics["actor_loss"]) == pytest.approx(float(loss), rel=1e-6)
    whole, metrics = actors(1.0).loss(params, KEY, batch)
    assert float(whole) == float(metrics["imagined_loss"]) != float(loss)


def test_an_imagined_group_of_everybody_adds_the_utilities_of_who_sees_nothing(monkeypatch):
    """If all are in one group, what is within is the plain utility and across there is nothing to see."""
    low = actors(1.0, mixer="sum")
    batch = a_batch()
    params = low.init(KEY, batch.view, batch.allocation).params
    sight = low.networks.look(KEY, batch.view, batch.allocation)
    everybody = jnp.stack([jnp.ones((4, 3, 7), bool), jnp.zeros((4, 3, 7), bool)], axis=1)
    blind = low.networks.utilities(params, sight._replace(utility_mask=everybody[:, 1]), batch.last_action)
    seeing = low.networks.utilities(params, sight, batch.last_action)
    chosen = np.take_along_axis(np.asarray(blind + seeing), np.asarray(batch.action)[..., None], axis=-1)[..., 0]
    mixed = np.einsum("ba,bak->bk", chosen, sight.members)
    expected = float(np.mean((mixed - batch.target) ** 2))
    monkeypatch.setattr("alma.actors.actors.imagine_groups", lambda *_: everybody)
    assert float(low.loss(params, KEY, batch)[0]) == pytest.approx(expected, rel=1e-5)


def test_a_window_keeps_its_groups():
    """Rows of a batch are windows over and over: the loss of two equal steps of every window is that of one."""
    one, two = actors(1.0, window=1), actors(1.0, window=2)
    batch = a_batch()
    params = one.init(KEY, batch.view, batch.allocation).params
    doubled = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), batch)
    assert float(two.loss(params, KEY, doubled)[0]) == pytest.approx(float(one.loss(params, KEY, batch)[0]), rel=1e-5)


@pytest.mark.parametrize("trunk", ["pooling", "attention"])
def test_an_agent_that_imagines_itself_away_looks_at_nothing_of_its_own(trunk):
    """Across groups an agent is not in its own sight: alone, it has nothing to look at, and no utility of its own."""
    low = actors(0.5, trunk=trunk)
    view = jax.tree.map(lambda leaf: leaf[None], random_view(0))
    params = low.init(KEY, view, jnp.zeros((1, 3), int)).params
    sight = low.networks.look(KEY, view, jnp.zeros((1, 3), int))
    nothing = sight._replace(utility_mask=jnp.zeros_like(sight.utility_mask))
    blind = low.networks.utilities(params, nothing, jnp.full((1, 3), -1))
    assert np.allclose(blind[0, 0], blind[0, 1])
    assert np.allclose(blind[0, 0], blind[0, 2]), "the same for all, whoever they are"


def test_it_works_without_subtasks_too():
    flat = actors(0.5, scope=Flat)
    batch = a_batch()
    params = flat.init(KEY, batch.view, batch.allocation).params
    whole = ActorBatch(**{**vars(batch), "target": batch.target[:, :1], "weights": batch.weights[:, :1]})
    loss, metrics = flat.loss(params, KEY, whole)
    assert np.isfinite(loss)
    assert metrics["imagined_loss"] > 0


def test_gradients_are_those_of_valuing_all_actions_and_all_targets():
    """What training leaves out, the actions not taken and targets that cannot be chosen, makes no difference."""
    networks = ActorNetworkOptions(width=8, heads=2, hidden=8, aim=8)
    options = ActorOptions(batch=4, imagination=0.5, networks=networks)
    few, all_of_them = (
        Actors(replace(SPEC, max_targets=most), options, Masked(replace(SPEC, max_targets=most)), training_period=5)
        for most in (3, None)
    )
    batch = a_batch()
    target = jax.random.randint(jax.random.key(5), batch.view.target.shape, -1, SPEC.entities)
    target = target.at[..., 0].set(-1)  # so that there are three at the most
    batch = replace(batch, view=replace(batch.view, target=target))
    params = few.init(KEY, batch.view, batch.allocation).params

    def plainly(params):
        look_key, group_key = jax.random.split(KEY)
        sight = all_of_them.networks.look(look_key, batch.view, batch.allocation)
        groups = imagine_groups(group_key, 4, SPEC.agents, SPEC.entities)
        masks = jnp.concatenate([sight.utility_mask[:, None], sight.utility_mask[:, None] & groups], axis=1)
        utility = all_of_them.networks.utility
        values = utility.apply(params["utility"], sight.view, masks, batch.last_action)
        actions = jnp.broadcast_to(batch.action[:, None], values.shape[:-1])
        chosen = jnp.take_along_axis(values, actions[..., None], axis=-1)[..., 0]
        loss, _ = qmix_loss(params, all_of_them.networks, batch, sight, chosen[:, 0])
        return 0.5 * loss + 0.5 * refil_loss(params, all_of_them.networks, batch, sight, groups, chosen[:, 1:])

    loss, gradients = jax.jit(jax.value_and_grad(lambda params: few.loss(params, KEY, batch)[0]))(params)
    expected_loss, expected = jax.jit(jax.value_and_grad(plainly))(params)
    assert float(loss) == pytest.approx(float(expected_loss), rel=1e-5)
    assert any(leaf.any() for leaf in jax.tree.leaves(gradients["utility"]["params"]["Aim_0"]))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradients, expected)
