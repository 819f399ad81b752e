from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alma
from alma import NOBODY
from alma.allocators.rules import allocator_by_name
from alma.play.episodes import begin, play_episodes, update_statistics
from alma.play.scripts import scripted_actors
from alma.play.situation import Situation
from alma.play.summary import Results, rate_with_interval
from alma.play.team import NOTHING_LEARNED, Team
from alma.viewer.record import record

TASK = alma.make("save-the-city", max_steps=40)


def by_rule(period=5, allocation="heuristic", actors="scripted"):
    """A team that follows scripts and rules, with what it has learned: nothing."""
    return Team(scripted_actors(TASK, actors), allocator_by_name(TASK, allocation), period), NOTHING_LEARNED


SCRIPTED = by_rule()


@pytest.fixture(scope="module")
def results():
    return play_episodes(TASK, *SCRIPTED, 40, parallel=16)


def test_episodes_do_not_depend_on_the_batch(results):
    other = play_episodes(TASK, *SCRIPTED, 20, parallel=20)
    assert (results.length[:20] == other.length).all()
    np.testing.assert_allclose(results.total[:20], other.total, atol=1e-4)
    assert len(results.length) == 40


def test_seeds_differ(results):
    assert not np.array_equal(play_episodes(TASK, *SCRIPTED, 40, seed=1, parallel=16).total, results.total)


def test_figures_hang_together(results):
    assert (results.length <= 40).all()
    assert (results.length[~results.success] >= 1).all()
    assert set(results.team_size) <= {2, 3, 4, 5}
    solved = results.success
    np.testing.assert_allclose(results.metrics["completed"][solved], 1, atol=1e-6)
    assert (results.metrics["burned_down"][solved] == 0).all()


def test_a_recorded_episode_is_the_first_one_of_its_seed(results):
    recorded = record(TASK, *SCRIPTED)[0]
    assert recorded.length == results.length[0]
    assert recorded.frames.state.time.tolist() == list(range(recorded.length + 1))
    assert recorded.success == results.success[0]
    np.testing.assert_allclose(recorded.total, results.total[0], atol=1e-4)


def test_allocations_are_renewed_at_decision_points_only():
    """Random allocation differs almost surely whenever it is renewed, so changes mark decision points."""
    recorded = record(TASK, *by_rule(period=4, allocation="random"), seed=2)[0]
    active, allocations = recorded.frames.view.active, recorded.frames.allocation
    since = 0
    for t in range(1, recorded.length):
        since += 1
        finished = not np.array_equal(active[t], active[t - 1])
        if np.array_equal(allocations[t], allocations[t - 1]):
            continue
        assert finished or since == 4
        since = 0
    assert len({tuple(allocation.tolist()) for allocation in allocations}) > 3


def test_random_players_use_available_actions_only():
    actors = scripted_actors(TASK, "random")
    state = TASK.reset(jax.random.key(0))
    view = TASK.view(state)
    situation = Situation(state, view, jnp.zeros(5, jnp.int32), jnp.full(5, -1))
    act = jax.jit(jax.vmap(lambda key: actors.greedy(None, key, situation)))
    actions = act(jax.random.split(jax.random.key(1), 200))
    for agent in np.flatnonzero(view.present[:5]):
        assert set(actions[:, agent].tolist()) == set(np.flatnonzero(view.available[agent]).tolist())


def test_summary_of_known_results():
    known = Results(
        success=np.array([True, False, True, True]),
        total=np.array([1.0, 2.0, 3.0, 6.0]),
        length=np.array([10, 20, 30, 40]),
        team_size=np.array([2, 2, 3, 3]),
        switches=np.array([0.0, 4.0, 6.0, 0.0]),
        unattended=np.array([10.0, 0.0, 30.0, 60.0]),
        metrics={"completed": np.array([1.0, 0.5, 1.0, 1.0])},
    )
    summary = known.summary()
    assert summary["success_rate"] == 0.75
    assert summary["mean_return"] == 3
    assert summary["mean_length"] == 25
    assert summary["mean_completed"] == 0.875
    assert summary["switches_per_step"] == pytest.approx(10 / (20 + 40 + 90 + 120))
    assert summary["unattended_subtasks"] == 1
    assert summary["by_team_size"]["2"]["success_rate"] == 0.5
    assert summary["by_team_size"]["3"]["success_rate"] == 1


def test_wilson_interval():
    # By hand: p = 0.5, n = 100, z = 1.96 gives 0.5 -+ 0.0962.
    rate = rate_with_interval(np.arange(100) < 50)
    assert rate["interval"] == pytest.approx([0.4038, 0.5962], abs=1e-4)


@pytest.mark.parametrize(
    ("make_error", "message"),
    [
        (lambda: scripted_actors(TASK, "clever"), "unknown actors 'clever': choose from random, scripted"),
        (lambda: by_rule(period=0), "at least 1 step"),
        (lambda: play_episodes(TASK, *SCRIPTED, 0), "episodes must lie between 1 and"),
    ],
)
def test_impossible_requests_are_refused(make_error, message):
    with pytest.raises(ValueError, match=message):
        make_error()


def test_who_is_gone_was_not_sent_elsewhere():
    """Of three agents one is sent from an active subtask, one from a finished one, and one has died."""
    view = TASK.view(TASK.reset(jax.random.key(0)))
    agents, active = view.visible.shape[0], view.active
    before = jnp.full(agents, NOBODY).at[:3].set(jnp.asarray([0, 1, 2]))
    after = jnp.full(agents, NOBODY).at[:2].set(jnp.asarray([2, 2]))
    view = replace(view, active=active.at[:3].set(jnp.asarray([True, False, True])))
    episodes = begin(TASK, *SCRIPTED, jax.random.key(0)[None])
    in_force = replace(episodes.in_force, allocation=after[None])
    view = jax.tree.map(lambda leaf: leaf[None], view)
    assert update_statistics(replace(episodes, in_force=in_force), before[None], view).switches.tolist() == [1]
