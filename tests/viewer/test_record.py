import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL
from helpers.recordings import recording

from alma.play.episodes import play_episodes
from alma.play.situation import Situation
from alma.runs.config import RunConfig
from alma.runs.policy import Policy, transplant
from alma.task.view import NOBODY
from alma.viewer.record import record

SEED = 7


@pytest.fixture(scope="module")
def policy():
    config = RunConfig("helpers.doors:Doors", {"limit": 6}, options=SMALL)
    trainer = config.make_trainer()
    return Policy(config, trainer.play_params(trainer.init(jax.random.key(3))))


@pytest.fixture(scope="module")
def recordings(policy):
    return record(policy.task, policy.team, policy.params, 4, SEED)


def test_recorded_episodes_are_those_of_an_evaluation(policy, recordings):
    results = play_episodes(policy.task, policy.team, policy.params, 4, SEED)
    assert [r.length for r in recordings] == results.length.tolist()
    assert [r.success for r in recordings] == results.success.tolist()
    np.testing.assert_allclose([r.total for r in recordings], results.total, rtol=1e-6)
    assert len(set(results.length.tolist())) > 1, "episodes of one length would say little"


def test_frames_follow_from_each_other(recordings):
    """A door opens when its owner pushes the right side, and the owner can only push the door it is sent to."""
    for one in recordings:
        for t in range(one.length):
            before, after, actions = one.state(t), one.state(t + 1), one.frames.actions[t]
            right_push = np.array([0, 2]) + np.where(before["left"], 0, 1)
            pushed = actions[before["owner"]] == right_push
            np.testing.assert_array_equal(after["open"], before["open"] | pushed)
            np.testing.assert_array_equal(actions // 2, one.frames.allocation[t])
            assert one.frames.outcome.reward[t] == (after["open"] ^ before["open"]).sum()


def test_actions_are_the_best_rated_and_allocations_the_best_considered(recordings):
    for one in recordings:
        frames, steps = one.frames, slice(one.length)
        values = np.where(frames.action_values.available, frames.action_values.values, -np.inf)[steps]
        np.testing.assert_array_equal(values.argmax(axis=-1), frames.actions[steps])
        for t in one.decisions:
            allocations, worth = frames.candidates.allocations[t], frames.candidates.values[t]
            np.testing.assert_array_equal(allocations[0], frames.allocation[t])
            assert worth[0] == pytest.approx(worth.max(), abs=1e-5)
            proposals = {tuple(row) for row in allocations[1:].tolist()}
            assert tuple(allocations[0].tolist()) in proposals, "the keys are those that it was drawn with"


def test_agents_see_their_own_door_alone(recordings):
    frames = recordings[0].frames
    allocation, sees = frames.allocation[0], frames.action_values.sees[0]
    for agent in range(2):
        assert sees[agent, 2:].tolist() == [allocation[agent] == 0, allocation[agent] == 1]


@pytest.fixture(scope="module")
def situation(policy):
    state = policy.task.reset(jax.random.key(0))
    return Situation(state, policy.task.view(state), jnp.full(2, NOBODY), jnp.full(2, NOBODY))


def test_a_search_is_weighed_by_the_critic_it_searched(policy, situation):
    team, params = transplant(policy, allocator="search")
    explain = jax.jit(team.allocator.explain_allocation)
    allocations, values = explain(params["allocator"], jax.random.key(1), situation, jnp.asarray([1, 0]))
    assert allocations[0].tolist() == [1, 0]
    np.testing.assert_allclose(values, policy.allocation_values(situation.view, allocations), rtol=1e-5)


def test_rules_consider_nothing(policy, situation):
    taken = jnp.asarray([1, 0])
    for team in (
        transplant(policy, allocator="heuristic")[0],
        RunConfig("helpers.doors:Doors", method="heuristic", options=SMALL).make_team(),
    ):
        assert not team.allocator.has_critic
        assert team.allocator.explain_allocation({}, jax.random.key(0), situation, taken) is None


def test_what_happened_is_told_apart():
    one = recording()
    assert one.decisions == [0, 5, 8]
    assert one.completions == [(7, 0), (11, 1)]
    assert one.deaths == [(7, 2)]
    assert [one.why(step) for step in one.decisions] == [
        "the episode begins",
        "5 steps have passed",
        "a subtask has finished",
    ]


def test_no_episodes_are_refused(policy):
    with pytest.raises(ValueError, match="episodes must lie between 1 and"):
        record(policy.task, policy.team, policy.params, 0)


def test_more_than_memory_holds_is_refused(policy):
    with pytest.raises(ValueError, match="1000000 episodes of up to 6 steps are too many to record: choose fewer"):
        record(policy.task, policy.team, policy.params, 1_000_000)
