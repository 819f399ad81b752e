"""The runs that figures need."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.example import FIGURE

from alma.reproduce.figures import FIGURES, Case, find_figures
from alma.reproduce.running import Budget, plan
from alma.training.options import CollectionOptions

BUDGET = Budget("tiny", steps=2048)


def test_a_plan_has_every_run_once_and_first_seeds_first(tmp_path):
    runs = plan([FIGURE, FIGURE], BUDGET, tmp_path)
    assert [run.name for run in runs] == [
        "doors_alma_allocator.proposals=4_tiny_0",
        "doors_heuristic-owner_tiny_0",
        "doors_alma_allocator.proposals=4_tiny_1",
        "doors_heuristic-owner_tiny_1",
    ]
    assert {run.state for run in runs} == {"new"}
    assert {run.config.options.steps for run in runs} == {2048}


@pytest.mark.parametrize(
    ("seeds", "pairs"), [(None, [(0, 1), (1, 0)]), ((1, 5, 7), [(1, 5), (5, 7), (7, 1)]), ((3,), [])]
)
def test_the_allocator_of_another_seed_is_that_of_the_next(seeds, pairs):
    case, budget = FIGURE.cases[2], Budget("tiny", seeds)
    assert budget.points_of(FIGURE, case) == [(seed, seed) for seed in budget.seeds_of(FIGURE, case.arm)]
    assert budget.points_of(FIGURE, replace(case, other_seed=True)) == pairs


def test_published_runs_are_those_that_figures_ask_for():
    results = Path(__file__).parents[2] / "results"
    runs = plan(FIGURES.values(), Budget(), results)
    published = [run for run in runs if run.state == "published"]
    assert published
    for run in published:
        run.check()


def test_seeds_that_are_asked_for_are_run(tmp_path):
    figures = find_figures("save-the-city", ("random",))
    assert len(plan(figures, Budget(), tmp_path)) == 2
    assert len(plan(figures, Budget(seeds=(0, 1, 2, 3)), tmp_path)) == 4


def test_figures_that_are_about_a_preset_refuse_others(tmp_path):
    with pytest.raises(ValueError, match="ablations makes no sense with preset paper: choose fast"):
        plan([FIGURES["ablations"]], Budget("paper"), tmp_path)


def test_two_runs_of_one_name_are_refused(tmp_path):
    """Names tell of groups of options by their types alone."""
    arm = replace(FIGURE.cases[0].arm, changes={"collection": CollectionOptions(environments=16, warmup=1280)})
    other = replace(arm, changes={"collection": CollectionOptions(environments=16, warmup=2560)})
    with pytest.raises(ValueError, match=r"two different runs of .* would be called doors_alma_collection=Collection"):
        plan(
            [
                replace(FIGURE, cases=(Case("doors", "one", arm),)),
                replace(FIGURE, cases=(Case("doors", "other", other),)),
            ],
            BUDGET,
            tmp_path,
        )
