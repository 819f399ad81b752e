"""Tasks as PettingZoo environments: PettingZoo's own tests, and what agents are given."""

import numpy as np
import pytest
from helpers.doors import Doors, push_the_right_side
from pettingzoo.test import parallel_api_test, parallel_seed_test
from pettingzoo.test.render_test import collect_render_results
from pettingzoo.utils.conversions import parallel_to_aec

import alma
from alma import pettingzoo

TASKS = alma.task_names()
"""Every task that comes with the package."""


@pytest.mark.parametrize("allocator", [None, "heuristic"])
@pytest.mark.parametrize("task", TASKS)
# Teams smaller than the largest one are no mistake, but the test always warns about them.
@pytest.mark.filterwarnings("ignore:No agents present but not all possible_agents:UserWarning")
def test_the_interface_is_that_of_pettingzoo(task, allocator):
    parallel_api_test(pettingzoo.parallel_env(task, allocator=allocator), num_cycles=30)


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_episode(task):
    parallel_seed_test(lambda: pettingzoo.parallel_env(task, allocator="random"), num_cycles=20)


@pytest.mark.parametrize("task", TASKS)
def test_observations_are_in_their_spaces(task):
    env = pettingzoo.parallel_env(task)
    observations, infos = env.reset(seed=3)
    for _ in range(5):
        assert set(observations) >= set(env.agents)
        for agent in env.agents:
            assert env.observation_space(agent).contains(observations[agent])
            assert infos[agent]["subtask"] == alma.NOBODY
        assert env.state_space.contains(env.state())
        sampled = {a: env.action_space(a).sample(observations[a]["action_mask"]) for a in env.agents}
        observations, _, _, _, infos = env.step(sampled)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("mode", ["human", "rgb_array"])
def test_tasks_are_drawn(task, mode, monkeypatch):
    opened = []
    monkeypatch.setattr(pettingzoo.webbrowser, "open", opened.append)
    env = pettingzoo.parallel_env(task, render_mode=mode)
    pictures = collect_render_results(parallel_to_aec(env))
    if mode == "human":
        assert set(pictures) == {None}
        assert len(opened) == 1
        page = env._page
        assert "data:image/png" in page.read_text()
        env.close()
        assert not page.parent.exists()
    else:
        assert all(picture.dtype == np.uint8 and picture.shape[2] == 3 for picture in pictures)
        assert not np.array_equal(pictures[0], pictures[-1])


def doors(**options):
    return pettingzoo.parallel_env(Doors(), **options)


def pushed(env, right=True):
    """The right actions of both agents, or wrong ones."""
    now = env.now
    right_side = np.asarray(push_the_right_side(None, now.state, now.in_force.allocation[0]))
    return {agent: int(right_side[i]) ^ (not right) for i, agent in enumerate(env.agents)}


def test_subtasks_rewards_and_ends():
    """Each agent opens its own door: 1 for it, 2 for the team."""
    for reward, expected in (("team", 2.0), ("subtask", 1.0)):
        env = doors(allocator="heuristic", reward=reward)
        _, infos = env.reset(seed=0)
        assert sorted(info["subtask"] for info in infos.values()) == [0, 1]
        assert infos["agent_0"]["active_subtasks"].tolist() == [True, True]
        assert infos["agent_0"]["allocation"].tolist() == [info["subtask"] for info in infos.values()]
        _, rewards, terminated, truncated, infos = env.step(pushed(env))
        assert rewards == dict.fromkeys(["agent_0", "agent_1"], expected)
        assert all(terminated.values())
        assert not any(truncated.values())
        assert env.agents == []
        assert infos["agent_0"]["success"]
        assert infos["agent_0"]["subtask_rewards"].tolist() == [1, 1]
        with pytest.raises(ValueError, match="reset"):
            env.step({})


def test_actions_are_masked_by_subtask_only_under_an_allocation():
    free, _ = doors().reset(seed=0)
    assert free["agent_0"]["action_mask"].all()
    env = doors(allocator="fixed:1,0")
    bound, _ = env.reset(seed=0)
    assert bound["agent_0"]["action_mask"].tolist() == [0, 0, 1, 1]
    assert bound["agent_1"]["action_mask"].tolist() == [1, 1, 0, 0]


def test_unavailable_actions_are_replaced_and_unknown_ones_refused():
    env = doors(allocator="fixed:1,0")
    env.reset(seed=0)
    assert env._available_actions({"agent_0": 0, "agent_1": 1}).tolist() == [2, 1]
    with pytest.raises(ValueError, match="no action 4"):
        env.step({"agent_0": 4, "agent_1": 0})
    with pytest.raises(ValueError, match="agent_1 got none"):
        env.step({"agent_0": 0})


def test_the_vector_says_what_the_names_say():
    env = doors(allocator="fixed:1,0")
    observations, _ = env.reset(seed=0)
    rows = observations["agent_0"]["observation"].reshape(4, len(env.row))
    named = {name: rows[:, i].tolist() for i, name in enumerate(env.row)}
    assert named["is myself"] == [1, 0, 0, 0]
    assert named["belongs to my subtask"] == [1, 0, 0, 1]  # itself and door 1
    assert named["belongs to subtask 0"] == [0, 1, 1, 0]
    assert named["agent 1"] == [0, 1, 0, 0]
    owner = env.now.state["owner"]
    assert named["for me"] == [0, 0, *(owner == 0).tolist()]


def test_a_team_is_as_large_as_it_is_and_shrinks():
    """Team sizes vary in SaveTheCity; agents die in StarCraft."""
    env = pettingzoo.parallel_env("save-the-city")
    assert len({len(env.reset(seed=seed)[1]) for seed in range(20)}) > 1
    env = pettingzoo.parallel_env("starcraft")
    observations, _ = env.reset(seed=0)
    sizes = [len(env.agents)]
    while env.agents:
        actions = {agent: env.action_space(agent).sample(observations[agent]["action_mask"]) for agent in env.agents}
        alive = env.agents
        observations, _, terminated, truncated, _ = env.step(actions)
        assert set(observations) == set(terminated) == set(alive)
        assert set(env.agents) == {agent for agent in alive if not (terminated[agent] or truncated[agent])}
        sizes.append(len(env.agents))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 2, "nobody died before the end"


def test_a_fixed_team_keeps_those_who_are_absent_or_dead():
    """They see nothing and can do nothing; the team's reward is theirs too. All end together."""
    env = pettingzoo.parallel_env("starcraft", fixed_team=True, fighters=(3, 4))
    observations, _ = env.reset(seed=0)
    rng, gone = np.random.default_rng(0), 0
    while env.agents:
        assert env.agents == env.possible_agents
        masks = {agent: observations[agent]["action_mask"] for agent in env.agents}
        actions = {agent: rng.choice(np.flatnonzero(mask)) for agent, mask in masks.items()}
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert len(set(rewards.values())) == len(set(terminated.values())) == len(set(truncated.values())) == 1
        for agent, there in zip(env.possible_agents, env.now.view.present, strict=False):
            if not there:
                gone += 1
                assert not observations[agent]["observation"].any()
                assert np.flatnonzero(observations[agent]["action_mask"]).tolist() == [0]
                assert infos[agent]["subtask"] == alma.NOBODY
    assert gone > 0


def test_a_fixed_team_keeps_to_the_interface():
    parallel_api_test(doors(fixed_team=True), num_cycles=30)


@pytest.mark.parametrize("task", TASKS)
def test_infos_have_the_same_keys_and_shapes_at_all_times(task):
    """Other libraries store them in arrays."""
    env = pettingzoo.parallel_env(task, allocator="heuristic")
    _, at_first = env.reset(seed=0)
    for _ in range(3):
        observations, _, _, _, infos = env.step(dict.fromkeys(env.agents, 1))
        for agent in observations:
            shapes = {key: np.shape(value) for key, value in infos[agent].items()}
            assert shapes == {key: np.shape(value) for key, value in next(iter(at_first.values())).items()}
            assert infos[agent]["active_subtasks"].shape == infos[agent]["subtask_rewards"].shape
    assert "metrics/completed" in infos[agent] or "metrics/kills" in infos[agent]


def test_a_trained_policy_plays():
    policy = alma.load("pretrained:save-the-city")
    env = pettingzoo.parallel_env("save-the-city", allocator=policy)
    player = pettingzoo.Player(policy, env)
    solved = 0
    for seed in range(8):
        _, infos = env.reset(seed=seed)
        while env.agents:
            _, _, _, _, infos = env.step(player.actions())
        solved += infos["agent_0"]["success"]
    assert solved >= 5  # 0.92 of many; fewer than 5 of 8 once in 800 times


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="takes no options"):
        pettingzoo.parallel_env(Doors(), agents=3)
    with pytest.raises(ValueError, match="need an allocator"):
        doors(reward="subtask")
    with pytest.raises(ValueError, match="at least 1 step"):
        doors(period=0)
    env = doors(render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no scene"):
        env.render()
    with pytest.raises(ValueError, match="acts on subtasks"):
        pettingzoo.Player(alma.load("pretrained:save-the-city"), pettingzoo.parallel_env("save-the-city"))
