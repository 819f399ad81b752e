"""Weights that come with the package fit its networks, and do what they are for."""

import pytest

import alma
from alma.play.episodes import play_episodes
from alma.runs import pretrained


@pytest.mark.parametrize("name", pretrained.names())
def test_every_one_can_be_loaded(name):
    policy = alma.load(f"pretrained:{name}")
    assert policy.config.method == "alma"


def test_the_default_saves_most_cities():
    policy = alma.load(pretrained.DEFAULT)
    # 0.92 in long evaluations; 64 episodes have a standard error of 0.04
    assert play_episodes(policy.task, policy.team, policy.params, 64).success_rate > 0.74


def test_paths_are_left_as_they_are(tmp_path):
    assert pretrained.locate(tmp_path) == tmp_path


def test_unknown_ones_are_named():
    with pytest.raises(ValueError, match=r"no pretrained weights 'city': choose from .*save-the-city"):
        alma.load("pretrained:city")
