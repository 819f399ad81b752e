"""The fused loop: what it remembers of play, and that a run can be cut anywhere and go on the same."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import alma
from alma import NOBODY, Outcome, Task, TaskSpec, View
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.allocators.options import AllocatorNetworkOptions, AllocatorOptions
from alma.learning.replay import are_consecutive
from alma.play.decisions import apply_where
from alma.runs.checkpoint import load_tree, save_tree
from alma.tasks.save_the_city import SaveTheCity
from alma.training.options import CollectionOptions, TrainingOptions
from alma.training.trainer import Trainer

TINY = TrainingOptions(
    actors=ActorOptions(batch=16, networks=ActorNetworkOptions(width=8, hidden=8)),
    allocator=AllocatorOptions(
        batch=8, proposals=2, variations=1, period=4, networks=AllocatorNetworkOptions(width=8, choice_width=8)
    ),
    collection=CollectionOptions(environments=4, buffer=256, decisions=256, steps_per_update=8, warmup=48),
)


@pytest.fixture(scope="module")
def trainer():
    return Trainer(alma.make("save-the-city", max_steps=25), TINY)


@pytest.fixture(scope="module")
def begun(trainer):
    return trainer.init(jax.random.key(0))


@pytest.fixture(scope="module")
def averaging(trainer):
    """It learns the same, and keeps an average besides."""
    return replace(trainer, options=replace(TINY, play="average"))


@pytest.fixture(scope="module")
def learned(averaging):
    """A few updates, with an average of the parameters."""
    return averaging.chunk(averaging.init(jax.random.key(0)), 8)[0]


@pytest.fixture(scope="module")
def update(trainer):
    return jax.jit(trainer.update)


@pytest.fixture(scope="module")
def update_with_average(averaging):
    return jax.jit(averaging.update)


def copy(state):
    return jax.tree.map(jnp.copy, state)


def assert_equal(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.array_equal(a, b)


@pytest.fixture(scope="module")
def played(trainer, begun):
    """Sixty steps of play without learning, and every state in between."""

    def body(state, _):
        after, metrics = trainer.step(state)
        return after, (state.rollout, after.rollout, metrics)

    return jax.device_get(jax.jit(partial(jax.lax.scan, body, length=60))(copy(begun)))


def test_tasks_too_large_for_replay_are_refused():
    class Large(SaveTheCity):
        @property
        def spec(self):
            return replace(super().spec, subtasks=129)

    with pytest.raises(ValueError, match="numbers of 128 subtasks, and the task has 129"):
        Trainer(Large(), TINY)


def test_allocations_change_at_decision_points_only(played):
    _, (before, after, _) = played
    due = (after.in_force.since_decision == 1) | ~after.deciding
    changed = (before.in_force.allocation != after.in_force.allocation).any(axis=-1)
    assert changed.any()
    assert not (changed & ~due).any()
    assert (after.in_force.since_decision <= 4).all()


def test_decisions_follow_each_other(played):
    """Within an episode, the next decision starts in the state, and from the allocation, where the last one ended."""
    state, _ = played
    rows = state.decisions.rows
    for env in range(4):
        count = int(state.decisions.count[env])
        assert 10 < count < rows.reward.shape[1]
        for i in range(count - 1):
            first_of_episode = (rows.previous[env, i + 1] == NOBODY).all()
            if rows.terminated[env, i] or first_of_episode:
                continue
            assert np.array_equal(rows.next_state.health[env, i], rows.state.health[env, i + 1])
            assert np.array_equal(rows.allocation[env, i], rows.previous[env, i + 1])
            assert 1 <= rows.next_state.time[env, i] - rows.state.time[env, i] <= 4


def test_chains_of_decisions_end_with_their_episode(played):
    """Also where a time-out cut an episode off, and its last decision is missing."""
    state, _ = played
    rows = jax.tree.map(lambda leaf: leaf[0, : state.decisions.count[0]], state.decisions.rows)
    first_of_episode = (rows.previous[1:] == NOBODY).all(axis=-1)
    assert (first_of_episode & ~rows.terminated[:-1]).any()
    pairs = jax.tree.map(lambda leaf: jnp.stack([leaf[:-1], leaf[1:]]), rows)
    np.testing.assert_array_equal(are_consecutive(pairs)[1], ~first_of_episode)


def test_rewards_of_decisions_add_up(played):
    """Over all finished decisions plus those under way plus what time-outs cut off, no reward is lost or doubled."""
    state, (_, after, metrics) = played
    stored = sum(state.decisions.rows.reward[env, : state.decisions.count[env]].sum() for env in range(4))
    under_way = state.rollout.decision.reward[state.rollout.deciding].sum()
    truncated = state.steps.rows.truncated[:60]
    # A decision that a time-out cut short is dropped: its reward is the one it had grown to.
    cut = after.decision.reward[truncated].sum()
    assert stored + under_way + cut == pytest.approx(metrics["reward"].sum(), rel=1e-4)


def test_states_that_episodes_ended_in_are_remembered(played):
    """One step further than the last step of the episode, and with nothing left to do where it is really over."""
    steps = played[0].steps
    rows = jax.tree.map(lambda leaf: leaf[: steps.count], steps.rows)
    done = rows.terminated | rows.truncated
    assert steps.ended == done.sum() > 0
    last = jax.tree.map(lambda leaf: leaf[rows.end[done]], steps.ends)
    np.testing.assert_array_equal(last.time, rows.state.time[done] + 1)
    np.testing.assert_array_equal(last.building_position, rows.state.building_position[done])
    assert (last.time[rows.truncated[done]] == 25).all()


def test_episodes_that_time_out_leave_no_decision(played):
    state, _ = played
    assert state.steps.rows.truncated.any()
    rows = state.decisions.rows
    for env in range(4):
        count = int(state.decisions.count[env])
        assert not (rows.next_state.time[env, :count] >= 25).any()


@dataclass(frozen=True)
class Clockwork(Task):
    """Nothing to choose: eight steps, of which the n-th pays n; the first of two subtasks is done after four."""

    times_out: bool = False

    @property
    def spec(self):
        return TaskSpec(
            name="clockwork",
            agents=1,
            entities=3,
            subtasks=2,
            actions=("wait",),
            features=("a",),
            relations=(),
            max_steps=8,
            mask_subtask_actions=False,
        )

    def reset(self, key):
        return jnp.int32(0)

    def step(self, key, state, actions):
        after, over = state + 1, state + 1 == 8
        pay = after.astype(jnp.float32)
        return after, Outcome(
            reward=pay,
            subtask_rewards=jnp.stack([pay, pay]),
            terminated=over & (not self.times_out),
            truncated=over & self.times_out,
            finished=jnp.stack([after >= 4, over]),
            success=over & (not self.times_out),
            metrics={},
        )

    def view(self, state):
        return View(
            entities=jnp.ones((3, 1)),
            present=jnp.ones(3, bool),
            visible=jnp.ones((1, 3), bool),
            subtask=jnp.asarray([NOBODY, 0, 1]),
            active=jnp.stack([state < 4, state < 8]),
            available=jnp.ones((1, 1), bool),
            target=jnp.full((1, 1), NOBODY),
            relations=jnp.zeros((1, 3, 0)),
        )


@pytest.mark.parametrize("times_out", [False, True])
def test_decisions_of_an_episode_worked_out_by_hand(times_out):
    """Every 3 steps, and when the first subtask is done: before steps 1, 4, 5 and 8. The decision in force when the
    episode ends leads to the next one's first state, unless time was up: then it is dropped."""
    options = replace(
        TINY,
        allocator=replace(TINY.allocator, period=3),
        collection=replace(TINY.collection, environments=2, steps_per_update=2),
    )
    trainer = Trainer(Clockwork(times_out), options)
    begun = trainer.init(jax.random.key(0))
    after, _ = jax.jit(partial(jax.lax.scan, lambda state, _: trainer.step(state), length=16))(begun)
    decisions = [(0, 3, 1 + 2 + 3, False), (3, 4, 4, False), (4, 7, 5 + 6 + 7, False), (7, 0, 8, True)]
    expected = 2 * (decisions[:3] if times_out else decisions)  # two episodes
    rows = after.decisions.rows
    for env in range(2):
        assert int(after.decisions.count[env]) == len(expected)
        found = zip(rows.state[env], rows.next_state[env], rows.reward[env], rows.terminated[env], strict=True)
        assert [tuple(map(float, row)) for row in found][: len(expected)] == expected


def test_steps_remember_what_was_done(played):
    state, _ = played
    rows, count = state.steps.rows, int(state.steps.count)
    assert count == 60
    done = rows.terminated | rows.truncated
    for t in range(59):
        expected = np.where(done[t][:, None], -1, rows.action[t])
        present = rows.state.agent_type[t + 1] >= 0
        assert np.array_equal(rows.last_action[t + 1][present], expected[present])


def test_a_run_goes_on_bit_for_bit_after_saving(averaging, tmp_path):
    begun = averaging.init(jax.random.key(0))
    straight, _ = averaging.chunk(copy(begun), 8)
    straight, _ = averaging.chunk(straight, 8)
    first, _ = averaging.chunk(copy(begun), 8)
    save_tree(tmp_path / "run.ckpt", first)
    loaded = load_tree(tmp_path / "run.ckpt", jax.eval_shape(lambda: begun))
    resumed, _ = averaging.chunk(loaded, 8)
    assert int(resumed.updates) == 11, "the first update comes with the sixth iteration"
    assert_equal(resumed, straight)


def test_updates_move_parameters_and_targets_follow(learned, update):
    before = replace(learned, average=None)
    after, metrics = update(before)
    for level in ("actors", "allocator"):
        old, new = getattr(before, level), getattr(after, level)
        rate = getattr(TINY, level).target_rate
        moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), old.params, new.params)
        assert sum(jax.tree.leaves(moved)) > 0.8 * len(jax.tree.leaves(moved))
        for o, n, t in zip(*map(jax.tree.leaves, (old.target, new.params, new.target)), strict=True):
            np.testing.assert_allclose(t, (1 - rate) * o + rate * n, atol=1e-6)
    assert all(np.isfinite(value) for value in metrics.values())


def test_the_average_of_live_networks_is_kept_where_it_plays(averaging, begun, learned, update_with_average):
    assert begun.average is None
    before = averaging.init(jax.random.key(0))
    assert_equal(
        averaging.play_params(before), {level: getattr(before, level).params for level in ("actors", "allocator")}
    )
    before = replace(learned, updates=jnp.int32(39))
    after, _ = update_with_average(before)
    for level, average in averaging.play_params(after).items():
        old, new = before.average[level], getattr(after, level).params
        for o, n, a in zip(*map(jax.tree.leaves, (old, new, average)), strict=True):
            np.testing.assert_allclose(a, 0.75 * o + 0.25 * n, atol=1e-6)


def test_what_plays_makes_no_difference_to_learning(learned, update, update_with_average):
    one, _ = update(replace(learned, average=None))
    other, _ = update_with_average(learned)
    assert_equal(one, replace(other, average=None))


def test_a_team_may_allocate_more_often_than_in_training(trainer):
    assert trainer.team.play_period == 4
    often = replace(trainer, options=replace(TINY, allocator=replace(TINY.allocator, play_period=2)))
    assert often.team.play_period == 2


def test_allocators_can_have_more_updates_than_actors(trainer, learned):
    before = replace(learned, average=None)
    eager = replace(trainer, options=replace(TINY, allocator=replace(TINY.allocator, updates=3, n_step=2)))
    after, metrics = jax.jit(eager.update)(before)

    def counts(state, level):
        """Of every optimiser of a level, the updates so far."""
        found = optax.tree.get_all_with_path(getattr(state, level).optimiser, "count")
        return np.asarray([int(count) for _, count in found])

    def made(level):
        return (counts(after, level) - counts(before, level)).tolist()

    assert (made("actors"), made("allocator")) == ([1], [3, 3])
    assert all(np.isfinite(value) for value in metrics.values())


@pytest.mark.parametrize("due", [[0], [1, 5], range(8), []])
def test_only_where_is_the_same_as_everywhere(due):
    mask = jnp.zeros(8, bool).at[jnp.asarray(list(due), int)].set(True)
    inputs = jnp.arange(8.0)
    result = apply_where(mask, lambda portion, rows: (rows * 2, rows + 1), inputs, (-jnp.ones(8), jnp.zeros(8)))
    np.testing.assert_array_equal(result[0], jnp.where(mask, inputs * 2, -1))
    np.testing.assert_array_equal(result[1], jnp.where(mask, inputs + 1, 0))


def test_updates_wait_for_warmup_and_for_episodes(trainer, begun):
    def due(state, **collection):
        options = replace(TINY, collection=replace(TINY.collection, **collection))
        return bool(replace(trainer, options=options).is_ready_to_update(state))

    early, late = replace(begun, env_steps=jnp.int32(47)), replace(begun, env_steps=jnp.int32(48))
    assert not due(early)
    assert due(late)
    assert not due(late, episodes_per_update=2)
    assert due(replace(late, credit=jnp.int32(2)), episodes_per_update=2)
    assert not due(replace(late, credit=jnp.int32(1)), episodes_per_update=2)


def test_episodes_earn_updates_after_warmup(played):
    state, _ = played
    done = (state.steps.rows.terminated | state.steps.rows.truncated)[:60]
    warm = np.arange(60) * 4 >= 48
    assert int(state.credit) == done[warm].sum() > 0
    assert int(state.episodes) == done.sum()


def test_every_episode_earns_one_update_however_short():
    """As the paper has it. Four environments end their episodes at the same step; updates come in the steps after."""
    collection = replace(TINY.collection, steps_per_update=4, episodes_per_update=1)
    quick = Trainer(Clockwork(), replace(TINY, collection=collection), "flat")
    state, _ = quick.chunk(quick.init(jax.random.key(0)), 60)
    warm = 48 // 4  # steps of each environment
    earned = 4 * (60 // 8 - warm // 8)
    assert int(state.updates) + int(state.credit) == earned
    assert int(state.credit) <= 4, "no more than the episodes of the last step"


def test_full_buffers_take_little_room():
    """5000 episodes of up to 150 steps, and as many decisions, in under 300 MB."""
    collection = replace(TrainingOptions().collection, buffer=750_000, decisions=200_000)
    trainer = Trainer(alma.make("save-the-city"), replace(TrainingOptions(), collection=collection))
    state = jax.eval_shape(trainer.init, jax.random.key(0))
    leaves = jax.tree.leaves((state.steps, state.decisions))
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) < 300e6
