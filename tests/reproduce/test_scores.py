"""A figure from its runs to its files."""

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from helpers.example import DOORS, FIGURE, LEARNED, OWNER, made_up
from rich.console import Console

from alma.launch.launcher import train_all
from alma.launch.local import Local
from alma.play.episodes import play_episodes
from alma.reproduce import scores as scoring
from alma.reproduce.figures import Case
from alma.reproduce.marl_eval import marl_eval
from alma.reproduce.rows import rows_of
from alma.reproduce.running import Budget, plan
from alma.reproduce.scores import EPISODES, SEED, condition, curves_of, score_all
from alma.reproduce.statistics import Estimate
from alma.reproduce.writing import missing, table, write_figure
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS, fingerprint, load, transplant

BUDGET = Budget("tiny", seeds=(0,), steps=2048)
CONSOLE = Console(stderr=True, force_terminal=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The figure's runs, really trained, by the command that `alma reproduce` uses."""
    out = tmp_path_factory.mktemp("results")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])  # where the task is
    try:
        train_all(plan([FIGURE], BUDGET, out), Local(), CONSOLE)
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.__setitem__("PYTHONPATH", before)
    return out


@pytest.fixture(scope="module")
def scores(trained):
    return score_all(FIGURE, BUDGET, trained, CONSOLE)


def test_every_point_is_scored(scores):
    assert [score.case.label for score in scores] == [case.label for case in FIGURE.cases]
    assert {score.summary["episodes"] for score in scores} == {EPISODES}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "as-trained"),
        ({"spread": 0.5}, "spread=0.5"),
        ({"spread": (0.0, 1.0), "one_spread": 0.5}, "spread=0.0,1.0_one_spread=0.5"),
    ],
)
def test_scores_are_kept_under_what_differs_from_training(options, name):
    assert condition(replace(FIGURE.cases[0], task_options=options), [RunFolder(Path("run"))]) == name


def test_scores_are_those_of_evaluate(trained, scores):
    policy = load(trained / "runs" / LEARNED.run_name("tiny", 0), trust=True)
    by_hand = play_episodes(policy.task, policy.team, policy.params, EPISODES, SEED).summary()
    assert scores[0].summary["success_rate"] == by_hand["success_rate"]


def test_the_task_of_a_point_can_differ_from_training(scores):
    one_step = scores[-1]
    assert one_step.summary["mean_length"] == 1 < scores[0].summary["mean_length"]


@pytest.mark.parametrize("arm", [LEARNED, OWNER], ids=["allocator", "actors"])
def test_scores_are_kept_until_weights_change(trained, scores, monkeypatch, arm):
    monkeypatch.setattr(scoring, "play_episodes", lambda *_: pytest.fail("played again"))
    assert score_all(FIGURE, BUDGET, trained, CONSOLE) == scores
    transplanted = replace(FIGURE, cases=FIGURE.cases[2:3])
    weights = trained / "runs" / arm.run_name("tiny", 0) / "policy.safetensors"
    kept = weights.read_bytes()
    policy = load(weights, trust=True)
    replace(policy, params=jax.tree.map(lambda leaf: leaf + 1, policy.params)).save(weights)
    with pytest.raises(pytest.fail.Exception, match="played again"):
        score_all(transplanted, BUDGET, trained, CONSOLE)
    weights.write_bytes(kept)


def test_damaged_scores_are_played_again_and_damaged_results_named(trained, scores):
    run = trained / "runs" / OWNER.run_name("tiny", 0)
    kept = (run / "scores" / "as-trained.json").read_text()
    (run / "scores" / "as-trained.json").write_text(kept[:50])
    assert score_all(FIGURE, BUDGET, trained, CONSOLE) == scores
    assert (run / "scores" / "as-trained.json").read_text() == kept
    result = (run / "result.json").read_text()
    (run / "result.json").write_text("")
    with pytest.raises(ValueError, match=r"result.json cannot be read"):
        score_all(FIGURE, BUDGET, trained, CONSOLE)
    (run / "result.json").write_text(result)


def test_published_runs_need_no_weights(trained, scores, tmp_path, monkeypatch):
    monkeypatch.setattr(scoring, "play_episodes", lambda *_: pytest.fail("played again"))
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors"))
    assert score_all(FIGURE, BUDGET, tmp_path, CONSOLE) == scores
    run = tmp_path / "runs" / LEARNED.run_name("tiny", 0)
    (run / "scores" / "as-trained.json").unlink()
    assert score_all(FIGURE, BUDGET, tmp_path, CONSOLE) == scores[1:], "what was not played cannot be"
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**result, "weights": "others"}))
    assert score_all(FIGURE, BUDGET, tmp_path, CONSOLE) == scores[1:2], "what others have played is not shown"


def test_points_without_their_runs_are_missing(trained, scores):
    two_seeds = replace(BUDGET, seeds=(0, 1))
    assert score_all(FIGURE, two_seeds, trained, CONSOLE) == scores
    assert missing(FIGURE, BUDGET, scores) == []
    assert missing(FIGURE, two_seeds, scores) == [f"Doors: {case.label}, seed 1" for case in FIGURE.cases]


@pytest.fixture
def another_seed(trained, tmp_path):
    """The same runs, and one of ALMA with another seed and other weights."""
    shutil.copytree(trained / "runs", tmp_path / "runs", ignore=shutil.ignore_patterns("scores"))
    first, second = (tmp_path / "runs" / LEARNED.run_name("tiny", seed) for seed in (0, 1))
    shutil.copytree(first, second)
    policy = load(first, trust=True)
    replace(policy, params=jax.tree.map(lambda leaf: leaf + 1, policy.params)).save(second / WEIGHTS)
    return tmp_path


CONTROL = Case("Doors", "ALMA's allocator on actors of another seed", LEARNED, allocator=LEARNED, other_seed=True)
CONTROLLED = replace(FIGURE, cases=(CONTROL, FIGURE.cases[0]))
TWO_SEEDS = replace(BUDGET, seeds=(0, 1))


def test_the_allocator_of_another_seed_is_put_on_actors(another_seed):
    folders = [another_seed / "runs" / LEARNED.run_name("tiny", seed) for seed in (0, 1)]
    weights = [fingerprint(folder / WEIGHTS) for folder in folders]
    scores = score_all(replace(CONTROLLED, cases=(CONTROL,)), TWO_SEEDS, another_seed, CONSOLE)
    assert [score.seed for score in scores] == [0, 1]
    assert [score.summary["played_by"]["weights"] for score in scores] == [weights, weights[::-1]]
    actors, allocator = (load(folder, trust=True) for folder in folders)
    by_hand = play_episodes(actors.task, *transplant(actors, allocator=allocator), EPISODES, SEED).summary()
    assert scores[0].summary["mean_return"] == by_hand["mean_return"]
    assert score_all(replace(CONTROLLED, cases=(CONTROL,)), BUDGET, another_seed, CONSOLE) == []


def test_a_control_is_missed_where_it_was_played_for_some_seeds_only(another_seed):
    as_trained = [f"Doors: ALMA, seed {seed}" for seed in (0, 1)]
    played = made_up("ALMA", 0, 0.6)
    assert missing(CONTROLLED, TWO_SEEDS, [replace(played, case=CONTROL)]) == [
        f"Doors: {CONTROL.label}, seed 1",
        *as_trained,
    ]
    for weights in another_seed.rglob(WEIGHTS):
        weights.unlink()
    assert score_all(CONTROLLED, TWO_SEEDS, another_seed, CONSOLE) == [], "nothing was noted, nothing can be played"
    assert missing(CONTROLLED, TWO_SEEDS, []) == as_trained


def write(scores, curves, out, plots):
    return write_figure(
        FIGURE, BUDGET, scores, curves, out, runs_in=out / "runs", command="alma reproduce doors", plots=plots
    )


def test_the_files_of_a_figure(trained, scores):
    curves = curves_of(FIGURE, BUDGET, trained)
    files = write(scores, curves, trained, plots=True)
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
    folder = trained / "doors-tiny"
    with (folder / "scores.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [float(row["success_rate"]) for row in written] == [score.summary["success_rate"] for score in scores]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["preset"] == "tiny"
    assert summary["runs"] == 2
    assert summary["rows"][0]["steps"] == 2048
    assert "`alma reproduce doors`: preset `tiny`, 2 runs" in (folder / "table.md").read_text()
    (versions,) = summary["versions"]
    assert (
        versions == json.loads((trained / "runs" / OWNER.run_name("tiny", 0) / "config.json").read_text())["versions"]
    )
    write(scores, curves, trained, plots=False)
    assert not (folder / "figure.png").exists(), "a picture of other numbers is worse than none"


def test_curves_lead_to_where_the_run_ended(trained):
    curves = [point for point in curves_of(FIGURE, BUDGET, trained) if point.case == FIGURE.cases[0]]
    assert curves[-1].step == 2048
    result = json.loads((trained / "runs" / LEARNED.run_name("tiny", 0) / "result.json").read_text())
    assert curves[-1].summary["success_rate"] == result["evaluation"]["success_rate"]


def test_curves_are_of_finished_runs_only(trained):
    result = trained / "runs" / LEARNED.run_name("tiny", 0) / "result.json"
    kept = result.read_text()
    result.unlink()
    assert {point.case.label for point in curves_of(FIGURE, BUDGET, trained)} == {"heuristic"}
    result.write_text(kept)


def test_only_runs_as_they_were_trained_have_curves(trained):
    assert {point.case.label for point in curves_of(FIGURE, BUDGET, trained)} == {"ALMA", "heuristic"}


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
    text = table(FIGURE, rows, "four runs")
    assert f"| heuristic | 0, 1 | 1.0M | 2.0 | {theirs.solved} | 1.20 | {theirs.improvement} |" in text
    assert "| ALMA is better |" in text
    assert rows_of(scores, "heuristic")[0].improvement.value == pytest.approx(0.25)


def test_methods_beside_a_sweep_are_compared_with_all_of_it():
    sweep = [made_up("ALMA", 0, rate, at) for at, rate in ((1, 0.6), (3, 0.8), (5, 0.4), (9, 0.2))]
    beside = [made_up("heuristic", seed, 0.5) for seed in (0, 1)]
    *along, compared = rows_of([*sweep, *beside], "ALMA")
    assert [row.improvement for row in along] == [None] * 4
    assert compared.improvement == Estimate(0.5), "two of four are better; values are no seeds, so no interval"
    *_, there = rows_of([*sweep, made_up("heuristic", 0, 0.5, at=3)], "ALMA")
    assert there.improvement.value == pytest.approx(1), "what has a place is compared at its place"


def test_the_layout_of_marl_eval(trained, scores):
    curves = curves_of(FIGURE, BUDGET, trained)
    everything = marl_eval(FIGURE, scores, curves)[DOORS.name][DOORS.name]
    assert list(everything) == ["ALMA", "heuristic", "ALMA on the heuristic's actors", "ALMA one step"], "no commas"
    algorithms = marl_eval(FIGURE, scores[:2], curves)[DOORS.name][DOORS.name]  # those that have curves
    run = algorithms["heuristic"]["seed_0"]
    (only,) = [point for point in curves if point.case == FIGURE.cases[1]]
    assert run["step_0"]["step_count"] == only.step == 2048
    assert run["step_0"]["win_rate"] == [only.summary["success_rate"]]
    assert run["step_0"]["return"] == [only.summary["mean_return"]]
    assert run["absolute_metrics"]["win_rate"] == [scores[1].summary["success_rate"]]
