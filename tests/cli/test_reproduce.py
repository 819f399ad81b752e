"""`alma reproduce`."""

import json

import pytest
from helpers.commandline import run
from helpers.summaries import made_up_result, made_up_summary

from alma.cli import reproduce
from alma.files import write_json
from alma.launch.estimate import MINUTES_PER_MILLION, RELATIVE_COST
from alma.reproduce.figures import FIGURES
from alma.reproduce.scores import EPISODES, SEED
from alma.runs.folder import RunFolder


def test_reproduce_says_what_it_would_run(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(MINUTES_PER_MILLION, ("starcraft", "fast"), 10.0)
    monkeypatch.setitem(RELATIVE_COST, "flat", 0.8)
    run("reproduce", "spread", "--settings", "sz-disadvantage", "--seeds", "0", "--dry-run", "--out", tmp_path)
    printed = capsys.readouterr().out
    assert "sz-disadvantage_alma_fast_0" in printed
    assert "sz-disadvantage_flat_fast_0" in printed
    # Two million steps, and a minute and a half besides: 21.5 minutes for ALMA, 17.5 for flat.
    assert "about 39 min on 2 cores" in " ".join(printed.split())
    assert not any(tmp_path.iterdir())


def test_help_names_all_figures(capsys):
    with pytest.raises(SystemExit):
        run("reproduce", "--help")
    words = capsys.readouterr().out.replace("│", " ").replace(",", " ").split()
    assert {f"`{name}`" for name in FIGURES} <= set(words)


@pytest.fixture
def published(tmp_path):
    """A folder with one finished run, without its weights: ALMA on S&Z disadvantage, played as it was trained."""
    arm = FIGURES["starcraft"].arms[0]
    folder = RunFolder(tmp_path / "runs" / arm.run_name("fast", 0))
    folder.create(arm.config("fast", 0))
    write_json(folder.result, made_up_result(2_000_000, 12.0, made_up_summary(512, 1024), weights="these"))
    (folder.path / "scores").mkdir()
    played_by = {"weights": ["these"], "episodes": EPISODES, "seed": SEED}
    rates = made_up_summary(EPISODES // 2, EPISODES, mean_return=9.0, mean_length=50.0)
    kept = {"played_by": played_by, **rates, "successes": "01" * (EPISODES // 2)}
    write_json(folder.path / "scores" / "as-trained.json", kept)
    return tmp_path


def test_published_runs_are_shown_without_training(capsys, published):
    part = ("--seeds", "0,3", "--methods", "alma", "flat", "--settings", "sz-disadvantage")
    run("reproduce", "starcraft", *part, "--no-train", "--no-plots", "--out", published)
    printed = capsys.readouterr()
    assert "1 of 4 runs are published ones" in printed.err.replace("\n", " ")
    assert "3 points are missing" in printed.out.replace("\n", " ")
    written = json.loads((published / "starcraft" / "summary.json").read_text())
    assert written["command"] == " ".join(("alma reproduce starcraft", *part))
    assert len(written["missing"]) == 3
    assert written["rows"][0]["solved"]["value"] == 0.5
    run("reproduce", "starcraft", *part, "--dry-run", "--out", published)
    assert "published" in capsys.readouterr().out


def test_figures_are_written_before_failures_are_told(monkeypatch, published):
    monkeypatch.setattr(reproduce, "train_all", lambda *_: ["one: the reason", "two: another"])
    with pytest.raises(SystemExit, match="one: the reason; two: another"):
        run("reproduce", "starcraft", "--no-plots", "--out", published)
    assert (published / "starcraft" / "table.md").exists()


def test_of_all_figures_those_that_fit_the_preset_are_shown(capsys, tmp_path):
    run("reproduce", "all", "--preset", "paper", "--seeds", "0", "--dry-run", "--out", tmp_path)
    printed = capsys.readouterr()
    assert "left out: ablations makes no sense with preset paper: choose fast or tiny" in printed.err
    assert "save-the-city_alma_paper_0" in printed.out
    with pytest.raises(SystemExit, match="ablations"):
        run("reproduce", "ablations", "--preset", "paper", "--dry-run", "--out", tmp_path)


def test_steps_for_all_do_not_go_with_steps_of_their_own(capsys, tmp_path):
    with pytest.raises(SystemExit, match="starcraft-minutes gives methods steps of their own: leave out --steps"):
        run("reproduce", "starcraft-minutes", "--steps", "1000", "--dry-run", "--out", tmp_path)
    run("reproduce", "all", "--steps", "1000", "--seeds", "0", "--dry-run", "--out", tmp_path)
    printed = capsys.readouterr()
    assert "left out: save-the-city-minutes gives methods steps of their own" in printed.err
    assert "transplant" not in printed.err
    assert "steps=" not in printed.out


def test_figures_are_not_written_into_files(tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(SystemExit, match="mine is a file: choose a folder with --out"):
        run("reproduce", "spread", "--dry-run", "--out", tmp_path / "mine")


def test_published_runs_are_found_from_any_folder(capsys, published, monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "PUBLISHED", published)
    mine = tmp_path / "mine"
    part = ("--seeds", "0", "--methods", "alma", "--settings", "sz-disadvantage")
    run("reproduce", "starcraft", *part, "--no-train", "--no-plots", "--out", mine)
    assert f"no runs in {mine}: showing the published ones, of {published}" in capsys.readouterr().err
    assert json.loads((mine / "starcraft" / "summary.json").read_text())["rows"][0]["solved"]["value"] == 0.5
    assert not (published / "starcraft").exists()


def test_figures_are_left_alone_where_there_is_nothing_to_show(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "PUBLISHED", tmp_path / "nowhere")
    (tmp_path / "spread").mkdir()
    (tmp_path / "spread" / "figure.png").write_text("of earlier")
    with pytest.raises(SystemExit, match="nothing to show: none of the runs is finished"):
        run("reproduce", "spread", "--no-train", "--out", tmp_path)
    assert "nothing is written" in capsys.readouterr().err
    assert (tmp_path / "spread" / "figure.png").read_text() == "of earlier"
