"""`alma train`: what its flags mean."""

from dataclasses import replace

import pytest
from helpers.commandline import run

from alma.cli import train
from alma.cli.train import preset_of
from alma.training.presets import PAPER, preset


def test_several_seeds_get_a_folder_each(monkeypatch, tmp_path):
    trained = []
    monkeypatch.setattr(train, "train_in", lambda folder, config, *_: trained.append((folder.path.name, config.seed)))
    run("train", "save-the-city", "--seeds", "2..4", "--out", tmp_path / "many")
    assert trained == [("many-2", 2), ("many-3", 3), ("many-4", 4)]
    assert (tmp_path / "many-3" / "config.json").exists()


def test_presets_are_where_flags_start_from(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(train, "train_in", lambda folder, config, *_: seen.append(config))
    run("train", "save-the-city", "--preset", "paper", "--actors.gamma", 0.9, "--out", tmp_path / "p")
    assert seen[0].preset == "paper"
    assert seen[0].options == replace(PAPER, actors=replace(PAPER.actors, gamma=0.9))


def test_actors_are_chosen_by_name(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(train, "train_in", lambda folder, config, *_: seen.append((folder.path, config)))
    monkeypatch.chdir(tmp_path)
    run("train", "save-the-city", "--actors", "refil")
    run("train", "starcraft", "--method", "copa")
    run("train", "starcraft", "--actors.imagination", 0)
    assert [path.name for path, _ in seen] == [
        "save-the-city-alma-refil-fast-0",
        "starcraft-copa-fast-0",
        "starcraft-alma-fast-0",
    ]
    assert [config.options.actors.imagination for _, config in seen] == [0.5, 0.5, 0]
    assert [config.options.allocator.period for _, config in seen] == [5, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["starcraft"], preset("fast", "starcraft")),
        (["--quiet", "starcraft", "--preset", "paper"], preset("paper", "starcraft")),
        (["--preset=tiny", "starcraft"], preset("tiny", "starcraft")),
        (["save-the-city", "--out", "starcraft"], preset("fast")),
        (["--preset", "unheard-of", "save-the-city"], preset("fast")),
    ],
)
def test_flags_start_from_the_preset_of_the_task(arguments, expected):
    assert preset_of(["train", *arguments]) == expected


def test_help_shows_every_hyperparameter(capsys):
    with pytest.raises(SystemExit):
        run("train", "--preset", "paper", "--help")
    printed = capsys.readouterr().out
    for flag in ("--actors.n-step", "--allocator.proposals", "--exploration.action.over", "--report.episodes"):
        assert flag in printed
    assert "2000000" in printed, "values of the preset"
