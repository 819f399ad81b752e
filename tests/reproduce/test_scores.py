"""A figure from its runs to its files."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from reproduce.example import DOORS, FIGURE, LEARNED, OWNER
from rich.console import Console

from alma.evaluation import play_episodes, summarise
from alma.policy import load
from alma.reproduce import scores as scoring
from alma.reproduce.running import Budget, plan, train_all
from alma.reproduce.scores import EPISODES, SEED, Score, curves_of, score_all
from alma.reproduce.writing import marl_eval, missing, rows_of, table, write_figure

BUDGET = Budget("tiny", seeds=(0,), steps=2048)
CONSOLE = Console(stderr=True, force_terminal=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The figure's runs, really trained, by the command that `alma reproduce` uses."""
    out = tmp_path_factory.mktemp("results")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])  # where the task is
    try:
        train_all(plan([FIGURE], BUDGET, out), 1, CONSOLE)
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.__setitem__("PYTHONPATH", before)
    return out


@pytest.fixture(scope="module")
def scores(trained):
    return score_all(FIGURE, BUDGET, trained, CONSOLE)


def test_every_point_is_scored(scores):
    assert [score.play.label for score in scores] == [play.label for play in FIGURE.plays]
    assert {score.summary["episodes"] for score in scores} == {EPISODES}


def test_scores_are_those_of_evaluate(trained, scores):
    policy = load(trained / "runs" / LEARNED.run_name("tiny", 0))
    by_hand = summarise(play_episodes(policy.task, policy.players, EPISODES, SEED))
    assert scores[0].summary["success_rate"] == by_hand["success_rate"]


def test_the_task_of_a_point_can_differ_from_training(scores):
    one_step = scores[-1]
    assert one_step.summary["mean_length"] == 1 < scores[0].summary["mean_length"]


def test_scores_are_kept_until_the_run_goes_on(trained, scores, monkeypatch):
    monkeypatch.setattr(scoring, "play_episodes", lambda *_: pytest.fail("played again"))
    assert score_all(FIGURE, BUDGET, trained, CONSOLE) == scores
    result = trained / "runs" / OWNER.run_name("tiny", 0) / "result.json"
    kept = result.read_text()
    result.write_text(json.dumps({**json.loads(kept), "step": 4096}))
    with pytest.raises(pytest.fail.Exception, match="played again"):
        score_all(FIGURE, BUDGET, trained, CONSOLE)
    result.write_text(kept)


def test_points_without_their_runs_are_missing(trained, scores):
    two_seeds = replace(BUDGET, seeds=(0, 1))
    assert score_all(FIGURE, two_seeds, trained, CONSOLE) == scores
    assert missing(FIGURE, BUDGET, scores) == []
    assert missing(FIGURE, two_seeds, scores) == [f"Doors: {play.label}, seed 1" for play in FIGURE.plays]


def test_the_files_of_a_figure(trained, scores, tmp_path):
    curves = curves_of(FIGURE, BUDGET, trained)
    files = write_figure(FIGURE, BUDGET, scores, curves, tmp_path, plots=True)
    assert {file.name for file in files} == {
        "summary.json",
        "marl_eval.json",
        "scores.csv",
        "curves.csv",
        "table.md",
        "figure.png",
        "figure.svg",
    }
    assert all(file.stat().st_size for file in files)
    with (tmp_path / "doors" / "scores.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [float(row["success_rate"]) for row in written] == [score.summary["success_rate"] for score in scores]
    summary = json.loads((tmp_path / "doors" / "summary.json").read_text())
    assert summary["preset"] == "tiny"
    assert summary["runs"] == 2
    assert summary["rows"][0]["steps"] == 2048


def test_curves_lead_to_where_the_run_ended(trained):
    curves = [point for point in curves_of(FIGURE, BUDGET, trained) if point.play == FIGURE.plays[0]]
    assert curves[-1].step == 2048
    result = json.loads((trained / "runs" / LEARNED.run_name("tiny", 0) / "result.json").read_text())
    assert curves[-1].summary["success_rate"] == result["evaluation"]["success_rate"]


def test_curves_are_of_finished_runs_only(trained):
    result = trained / "runs" / LEARNED.run_name("tiny", 0) / "result.json"
    kept = result.read_text()
    result.unlink()
    assert {point.play.arm for point in curves_of(FIGURE, BUDGET, trained)} == {OWNER}
    result.write_text(kept)


def made_up(label, seed, rate):
    play = next(play for play in FIGURE.plays if play.label == label)
    run = {"step": 1_000_000, "training_minutes": 2.0}
    return Score(play, seed, run, {"success_rate": rate, "mean_return": 2 * rate, "episodes": EPISODES})


def test_rows_compare_with_the_reference():
    scores = [
        *(made_up("ALMA", seed, rate) for seed, rate in enumerate((0.6, 0.8))),
        *(made_up("heuristic", seed, rate) for seed, rate in enumerate((0.5, 0.7))),
    ]
    rows = rows_of(scores, "ALMA")
    ours, theirs = rows
    assert ours.improvement is None
    assert ours.solved.value == pytest.approx(0.7)
    assert theirs.seeds == (0, 1)
    assert theirs.improvement.value == pytest.approx(0.75)
    text = table(FIGURE, BUDGET, rows)
    assert "| heuristic | 2 | 1.0M | 2.0 | 0.600 (0.500 - 0.700) | 1.20 | 0.75 |" in text
    assert "| ALMA better |" in text
    assert rows_of(scores, "heuristic")[0].improvement.value == pytest.approx(0.25)


def test_the_layout_of_marl_eval(trained, scores):
    curves = curves_of(FIGURE, BUDGET, trained)
    run = marl_eval(scores, curves)[DOORS.task][DOORS.name]["heuristic"]["seed_0"]
    (only,) = [point for point in curves if point.play == FIGURE.plays[1]]
    assert run["step_0"]["step_count"] == only.step == 2048
    assert run["step_0"]["win_rate"] == [only.summary["success_rate"]]
    assert run["step_0"]["return"] == [only.summary["mean_return"]]
    assert run["absolute_metrics"]["win_rate"] == [scores[1].summary["success_rate"]]
