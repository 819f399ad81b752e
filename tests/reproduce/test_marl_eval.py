"""marl-eval needs the same runs and evaluations of all algorithms; what does not have them is left out."""

from dataclasses import replace

from helpers.example import DOORS, FIGURE, made_up

from alma.reproduce.marl_eval import marl_eval
from alma.reproduce.scores import CurvePoint


def test_marl_eval_gets_the_same_runs_of_all_algorithms():
    scores = [
        made_up("ALMA", 0, 0.6),
        made_up("ALMA", 1, 0.8),
        made_up("heuristic", 0, 0.5),
        made_up("heuristic", 1, 0),
    ]
    fewer = [*scores, made_up("ALMA, one step", 1, 0.4)]
    assert marl_eval(FIGURE, fewer, []) == marl_eval(FIGURE, scores, [])
    assert {tuple(runs) for runs in marl_eval(FIGURE, scores, [])[DOORS.name][DOORS.name].values()} == {
        ("seed_0", "seed_1")
    }


def test_marl_eval_gets_the_seeds_that_all_points_have():
    swept = [
        replace(made_up("ALMA", seed, 0.6), case=replace(FIGURE.cases[0], panel="limit", at=at))
        for at, seeds in ((0.5, (0, 1)), (1.0, (0,)))
        for seed in seeds
    ]
    tasks = marl_eval(FIGURE, swept, [])[DOORS.name]
    assert {task: list(found["ALMA"]) for task, found in tasks.items()} == {
        "doors: limit 0.5": ["seed_0"],
        "doors: limit 1": ["seed_0"],
    }


def test_points_of_a_sweep_are_tasks_of_marl_eval():
    swept = [replace(made_up("ALMA", 0, 0.6), case=replace(FIGURE.cases[0], panel="limit", at=at)) for at in (0.5, 1.0)]
    unswept = made_up("heuristic", 0, 0.5)
    assert {task: list(found) for task, found in marl_eval(FIGURE, [*swept, unswept], [])[DOORS.name].items()} == {
        "doors: limit 0.5": ["ALMA"],
        "doors: limit 1": ["ALMA"],
    }


def curve(score, *steps):
    """Evaluations of a run, a minute for a thousand steps."""
    return [
        CurvePoint(score.case, score.seed, step, step / 1000, {"success_rate": step / 10_000, "mean_return": 1.0})
        for step in steps
    ]


def test_only_evaluations_that_all_runs_have_are_shown():
    ours, theirs = made_up("ALMA", 0, 0.6), made_up("heuristic", 0, 0.5)
    curves = curve(ours, 1000, 2000, 3000) + curve(theirs, 1000, 2000, 4000, 5000)
    algorithms = marl_eval(FIGURE, [ours, theirs], curves)[DOORS.name][DOORS.name]
    for runs in algorithms.values():
        run = runs["seed_0"]
        assert list(run) == ["step_0", "step_1", "absolute_metrics"]
        assert run["step_1"] == {"step_count": 2000, "elapsed_time": 120.0, "win_rate": [0.2], "return": [1.0]}
    assert algorithms["heuristic"]["seed_0"]["absolute_metrics"] == {"win_rate": [0.5], "return": [1.0]}


def test_what_came_of_a_run_is_its_evaluation_where_not_all_have_others():
    ours, transplanted = made_up("ALMA", 1, 0.6), made_up("ALMA on the heuristic's actors", 1, 0.5)
    algorithms = marl_eval(FIGURE, [ours, transplanted], curve(ours, 1000))[DOORS.name][DOORS.name]
    assert len(algorithms) == 2
    for runs in algorithms.values():
        assert list(runs["seed_1"]) == ["step_0", "absolute_metrics"]
    assert algorithms["ALMA"]["seed_1"]["step_0"] == {
        "step_count": 1_000_000,
        "elapsed_time": 180.0,  # three minutes
        "win_rate": [0.6],
        "return": [1.2],
    }
