"""A coach and those it advises."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.views import SPEC, random_view, select_entities
from scipy.stats import norm

from alma import NOBODY
from alma.actors.actors import Actors
from alma.actors.coach import Gaussian
from alma.actors.copa import CoachedActors, mean_entropy, recognition_loss
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.qmix import ActorBatch
from alma.actors.scope import Flat
from alma.play.situation import Situation

KEY = jax.random.key(0)
NETWORKS = ActorNetworkOptions(width=8, heads=2, hidden=8)
COACHED = CoachedActors(SPEC, ActorOptions(networks=NETWORKS), Flat(SPEC), training_period=5)
PLAIN = Actors(SPEC, ActorOptions(networks=NETWORKS), Flat(SPEC), training_period=5)
NOWHERE = jnp.full((2, 3), NOBODY)
VIEW = jax.tree.map(lambda *leaves: jnp.stack(leaves), random_view(0), random_view(1))


@pytest.fixture(scope="module")
def params():
    return COACHED.init(KEY, VIEW, NOWHERE).params


def test_with_a_strategy_of_zeros_coached_actors_are_flat_ones(params):
    situation = Situation(None, VIEW, NOWHERE, NOWHERE)
    flat = PLAIN.values(params, KEY, situation)
    zero = COACHED.values(params, KEY, situation._replace(strategy=jnp.zeros((2, 3, 8))))
    np.testing.assert_array_equal(zero, flat)
    advised = COACHED.values(params, KEY, situation._replace(strategy=jnp.ones((2, 3, 8))))
    assert not np.allclose(advised, flat)


def test_strategies_are_drawn_around_their_means(params):
    networks = COACHED.networks
    advice = networks.strategies(params, KEY, VIEW)
    drawn = jax.vmap(advice.draw)(jax.random.split(KEY, 4000))
    np.testing.assert_allclose(drawn.mean(axis=0), advice.mean, atol=0.1)
    np.testing.assert_allclose(jnp.log(drawn.var(axis=0)), advice.log_variance, atol=0.2)
    np.testing.assert_array_equal(networks.advise_best(params, KEY, VIEW), advice.mean)
    assert (advice.log_variance <= 0).all()


def test_the_coach_sees_which_subtask_an_entity_belongs_to(params):
    moved = replace(VIEW, subtask=VIEW.subtask.at[:, 4].set(0))
    apart, together = (COACHED.networks.advise_best(params, KEY, view) for view in (VIEW, moved))
    assert not np.allclose(apart, together)


def test_the_coach_sees_what_agents_do_not(params):
    blind = replace(VIEW, visible=jnp.zeros_like(VIEW.visible))
    seen, unseen = (COACHED.networks.advise_best(params, KEY, view) for view in (VIEW, blind))
    np.testing.assert_array_equal(seen, unseen)


def test_the_order_of_agents_does_not_matter_to_the_coach(params):
    order = np.array([2, 0, 1])
    shuffled = jax.vmap(lambda view: select_entities(view, order.tolist(), [6, 4, 3, 5]))(VIEW)
    one = COACHED.networks.advise_best(params, KEY, VIEW)
    np.testing.assert_allclose(COACHED.networks.advise_best(params, KEY, shuffled), one[:, order], atol=1e-5)
    actions = jnp.asarray([[0, 1, 2], [3, 2, 1]])
    guess = COACHED.networks.recognise(params, KEY, VIEW, actions)
    again = COACHED.networks.recognise(params, KEY, shuffled, actions[:, order])
    np.testing.assert_allclose(again.mean, guess.mean[:, order], atol=1e-5)


def test_densities_and_entropies_against_scipy():
    gaussian = Gaussian(jnp.asarray([0.5, -1.0]), jnp.asarray([0.0, -2.0]))
    expected = norm([0.5, -1.0], np.exp([0.0, -1.0]))
    values = jnp.asarray([1.5, -0.5])
    np.testing.assert_allclose(gaussian.log_density(values), expected.logpdf([1.5, -0.5]), rtol=1e-5)
    np.testing.assert_allclose(gaussian.entropy(), expected.entropy(), rtol=1e-5)


def test_recognition_by_hand():
    """Present agents count, and the log-density of each number is kept within bounds."""
    guess = Gaussian(jnp.zeros((1, 3, 2)), jnp.zeros((1, 3, 2)))
    strategy = jnp.asarray([[[1.0, 0.0], [100.0, 0.0], [7.0, 7.0]]])
    present = jnp.asarray([[True, True, False]])
    zero = np.log(2 * np.pi) / 2  # what a number costs that is guessed right
    assert float(recognition_loss(guess, strategy, present)) == pytest.approx((2 * zero + 0.5 + zero + 1000) / 2)
    sharp = Gaussian(jnp.zeros((1, 3, 2)), jnp.full((1, 3, 2), -10.0))
    assert float(recognition_loss(sharp, jnp.zeros((1, 3, 2)), present)) == 0, "never better than certain"
    assert float(mean_entropy(guess, present)) == pytest.approx(np.log(2 * np.pi) + 1)


def test_entropy_is_bounded_below_number_by_number():
    """A number that is certain adds nothing to the entropy, and takes nothing from that of the others."""
    present = jnp.ones((1, 1), bool)

    def entropy(log_variance):
        return mean_entropy(Gaussian(jnp.zeros((1, 1, 2)), log_variance), present)

    one_certain = jnp.asarray([[[0.0, -10.0]]])
    assert float(entropy(one_certain)) == pytest.approx((np.log(2 * np.pi) + 1) / 2)
    assert jax.grad(entropy)(one_certain).ravel().tolist() == [0.5, 0.0]


def test_strategies_are_recognised_by_two_layers(params):
    """What the recognition network finds goes through a hidden layer of its own."""
    layers = params["recogniser"]["params"]
    assert {name: leaf["kernel"].shape for name, leaf in layers.items() if name.startswith("Dense")} == {
        "Dense_0": (8, 8)
    }
    assert layers["_Advice_0"]["Dense_0"]["kernel"].shape == (8, 16)


def test_the_loss_reaches_the_coach_through_what_agents_do(params):
    actions = jnp.asarray([[0, 1, 2], [3, 2, 1]])
    ones = jnp.ones((2, 1))
    batch = ActorBatch(VIEW, VIEW, NOWHERE, actions, actions, ones, ones)
    loss, metrics = COACHED.loss(params, KEY, batch)
    extra = metrics["recognition_loss"] - 0.1 * metrics["strategy_entropy"]
    assert float(loss) == pytest.approx(float(metrics["actor_loss"] + 5e-5 * extra), rel=1e-5)
    silent = CoachedActors(SPEC, ActorOptions(networks=NETWORKS, advice=0.0), Flat(SPEC), training_period=5)
    gradients = jax.grad(lambda params: silent.loss(params, KEY, batch)[0])(params)
    assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(gradients["coach"]))
    assert not any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(gradients["recogniser"]))
