"""One run on several devices: it learns what it learns on one, and can move from some devices to others."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL, Doors
from jax.sharding import Mesh, PartitionSpec

from alma.actors.qmix import actor_batch
from alma.allocators.aql import allocator_batch, aql_loss
from alma.learning import replay
from alma.nn.devices import AXIS, mean_over_devices, sum_over_devices
from alma.play.episodes import play_episodes
from alma.training.options import with_overrides
from alma.training.sharding import Sharded, share_of
from alma.training.trainer import Trainer

DEVICES = tuple(jax.devices()[:2])
ITERATIONS = 40
TRAINER = Trainer(Doors(), SMALL)
SHARDED = Sharded(TRAINER, DEVICES)


def on_both(function, *specs):
    """The function compiled to run on two devices, each with its share of the inputs."""
    mapped = jax.shard_map(
        function, mesh=Mesh(np.asarray(DEVICES), (AXIS,)), in_specs=specs, out_specs=PartitionSpec(), check_vma=False
    )
    return jax.jit(mapped)


def assert_close(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def played():
    """A state with something in its replay."""
    state = TRAINER.init(jax.random.key(0))
    return jax.jit(lambda state: jax.lax.scan(lambda s, _: TRAINER.step(s), state, length=20)[0])(state)


@pytest.fixture(scope="module")
def batch_of_actors(played):
    """A batch whose weights lie nearly all in its second half, so that the shares are unlike."""
    actors, options = TRAINER.actors, TRAINER.options.actors
    windows = replay.sample_windows(jax.random.key(1), played.steps, 32, options.n_step + 1, TRAINER.training_period)
    params = played.actors.params
    batch = jax.jit(
        lambda: actor_batch(
            params, params, actors.networks, TRAINER.views, jax.random.key(2), windows, gamma=0.9, reward_scale=1.0
        )
    )()
    weights = batch.weights * (jnp.arange(32) % 4 == 0)[:, None].at[16:].set(True)
    return replace(batch, weights=weights)


def test_two_halves_of_a_batch_give_the_actors_the_gradient_of_the_whole(played, batch_of_actors):
    def gradient(params, batch):
        return jax.grad(TRAINER.actors.loss, has_aux=True)(params, jax.random.key(0), batch)

    def shared(params, batch):
        return mean_over_devices(gradient(params, batch))

    params = played.actors.params
    halves = on_both(shared, PartitionSpec(), PartitionSpec(AXIS))(params, batch_of_actors)
    whole = jax.jit(gradient)(params, batch_of_actors)
    assert_close(halves, whole)
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(whole[0])) > 1e-3


def test_two_halves_of_a_batch_give_the_allocator_the_gradient_of_the_whole(played):
    params, networks, options = played.allocator.params, TRAINER.allocator.networks, TRAINER.options.allocator
    chain = replay.sample_decisions(jax.random.key(1), played.decisions, 32, played.env_steps, 10_000, options.n_step)
    batch = jax.jit(
        lambda: allocator_batch(
            params,
            params,
            networks,
            TRAINER.views,
            jax.random.key(2),
            chain,
            gamma=0.9,
            reward_scale=1.0,
            candidates=TRAINER.allocator.candidates,
        )
    )()

    def gradient(params, batch):
        return jax.grad(lambda params: aql_loss(params, networks, batch, 0.01), has_aux=True)(params)

    halves = on_both(lambda *of: mean_over_devices(gradient(*of)), PartitionSpec(), PartitionSpec(AXIS))(params, batch)
    assert_close(halves, jax.jit(gradient)(params, batch))


def test_on_one_device_nothing_is_exchanged():
    tree = {"a": jnp.arange(3.0)}
    assert mean_over_devices(tree) is tree
    assert sum_over_devices(tree) is tree


@pytest.fixture(scope="module")
def learned():
    """A run on two devices, to the end, and the metrics of its last chunk."""
    chunk, state = SHARDED.compile(ITERATIONS), SHARDED.begin([0])
    for _ in range(16):
        state, metrics = chunk(state)
    return state, SHARDED.metrics(metrics)


def success(params):
    return play_episodes(TRAINER.task, TRAINER.team, params, 512, parallel=512).success_rate


def test_on_two_devices_as_much_is_learned_as_on_one(learned):
    """As in `test_methods.py`, where one device learns."""
    state, metrics = learned
    assert success(SHARDED.play_params(state)) > 0.97
    assert metrics["updates"] == ITERATIONS
    assert int(state.env_steps) == 16 * ITERATIONS * SMALL.collection.steps_per_update
    assert int(state.episodes) == int(np.sum(state.steps.ended))


def test_parameters_are_the_same_on_both_devices_and_environments_are_not(learned):
    state, _ = learned
    for leaf in jax.tree.leaves((state.actors.params, state.allocator.params)):
        one, other = (np.asarray(shard.data) for shard in leaf.addressable_shards)
        np.testing.assert_array_equal(one, other)
    owners = state.rollout.environments.state["owner"]
    one, other = (np.asarray(shard.data) for shard in owners.addressable_shards)
    assert one.shape == other.shape == (SMALL.collection.environments // 2, 2)
    assert not np.array_equal(one, other)


def test_a_checkpoint_has_the_layout_of_one_device_and_comes_back_as_it_was(learned):
    state, _ = learned
    kept = SHARDED.checkpoint(state)
    like = TRAINER.state_like()
    assert jax.tree.structure(kept) == jax.tree.structure(like)
    assert [leaf.shape for leaf in jax.tree.leaves(kept)] == [leaf.shape for leaf in jax.tree.leaves(like)]
    assert_same(kept, SHARDED.checkpoint(SHARDED.place([kept])))


def assert_same(state, other):
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


def test_a_resumed_run_has_the_checkpoints_of_one_that_was_not_interrupted():
    """Bit for bit: also in parts of replay that have no meaning."""
    chunk, state = SHARDED.compile(ITERATIONS), SHARDED.begin([1])
    for _ in range(6):
        state, _ = chunk(state)
    kept = SHARDED.checkpoint(state)
    on, _ = chunk(state)
    resumed, _ = chunk(SHARDED.place([kept]))
    assert_same(SHARDED.checkpoint(on), SHARDED.checkpoint(resumed))


def test_a_share_is_an_equal_part():
    share = share_of(SMALL, 2)
    assert (share.collection.environments, share.collection.buffer) == (8, 4_096)
    assert (share.actors.batch, share.allocator.batch) == (64, 32)


THREE = {
    "collection.environments": 48,
    "collection.steps_per_update": 192,
    "actors.batch": 48,
    "allocator.batch": 48,
}
"""Numbers that can be divided among three devices."""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("collection.environments", "environments"),
        ("actors.batch", "actors.batch"),
        ("allocator.batch", "allocator.batch"),
    ],
)
def test_what_cannot_be_divided_evenly_is_refused_by_name(path, name):
    share_of(with_overrides(SMALL, THREE), 3)
    with pytest.raises(ValueError, match=f"^{name} must be a multiple of the 3 devices, not 64"):
        share_of(with_overrides(SMALL, {**THREE, path: 64}), 3)
