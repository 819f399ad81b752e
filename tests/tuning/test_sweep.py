"""Sweeps: which runs there are, and what came of them."""

import json

import pytest
from helpers.engine import finish

from alma.reproduce.figures import FIGURES
from alma.reproduce.running import Budget, plan
from alma.tuning.results import records_of, results_of
from alma.tuning.sweep import Sweep, read_sweep


@pytest.fixture
def written(tmp_path):
    """Writes a sweep to a file."""

    def write(text, name="sweep.toml"):
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def test_a_grid_is_all_combinations(tmp_path):
    grid = {"actors.n_step": (1, 3), "set.agents": (2, 3)}
    runs = Sweep("save-the-city", ("alma", "flat"), (0, 1), grid=grid).runs(tmp_path)
    assert len({run.job.name for run in runs}) == len(runs) == 16
    found = {
        (run.arm.method, run.seed, run.job.config.options.actors.n_step, run.job.config.task_options["agents"])
        for run in runs
    }
    assert len(found) == 16
    assert [run.seed for run in runs] == 8 * [0] + 8 * [1], "all have a result early on"


def test_variants_are_run_as_they_are_each_with_the_whole_grid():
    variants = ({"allocator.period": 3}, {"allocator.period": 5, "allocator.entropy": 0.02})
    points = Sweep("save-the-city", grid={"actors.n_step": (1, 3)}, variants=variants).points()
    assert points == [{**variant, "actors.n_step": n_step} for variant in variants for n_step in (1, 3)]


def test_options_beside_the_grid_are_those_of_all_runs(tmp_path):
    sweep = Sweep("save-the-city", steps=5_000, options={"actors.gamma": 0.9}, set={"agents": 3})
    [run] = sweep.runs(tmp_path)
    assert (run.job.config.options.steps, run.job.config.options.actors.gamma) == (5_000, 0.9)
    assert run.job.config.task_options == {"agents": 3}


def test_runs_on_settings_of_figures_are_found_by_them(tmp_path):
    figure = FIGURES["save-the-city"]
    [arm] = [arm for arm in figure.arms if arm.method == "flat"]
    swept = Sweep("save-the-city", ("flat",), set=arm.setting.options).runs(tmp_path)
    assert swept[0].job.name in {job.name for job in plan([figure], Budget(seeds=(0,)), tmp_path)}


FILE = """
task = "save-the-city"
methods = ["alma", "heuristic"]
seeds = [0, 1]
steps = 1_000

[set]
agents = [2, 3]

[options]
actors.gamma = 0.97

[grid]
actors.n_step = [1, 3]
set.buildings = [[1, 2], 3]

[[variants]]
allocator.period = 3
"""


def test_a_sweep_is_read_from_a_file(written):
    assert read_sweep(written(FILE)) == Sweep(
        "save-the-city",
        ("alma", "heuristic"),
        (0, 1),
        steps=1_000,
        set={"agents": (2, 3)},
        options={"actors.gamma": 0.97},
        grid={"actors.n_step": (1, 3), "set.buildings": ((1, 2), 3)},
        variants=({"allocator.period": 3},),
    )
    as_json = json.dumps({"task": "starcraft", "grid": {"actors.n_step": [1, 2]}})
    assert read_sweep(written(as_json, "sweep.json")) == Sweep("starcraft", grid={"actors.n_step": (1, 2)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = [0]", "task: name a task"),
        ("task = 'save-the-city'\nseed = [0]", "there is no key 'seed': choose from grid, methods"),
        ("task = 'save-the-city'\nseeds = 3", "seeds must be a list, not 3"),
        ("task = 'save-the-city'\nseeds = []", "seeds must not be empty"),
        ("task = 'save-the-city'\ngrid = { actors.n_step = 3 }", "actors.n_step must be a list, not 3"),
        ("task = 'save-the-city'\ngrid = { actors.n_step = [] }", "grid: actors.n_step has no values"),
        ("task = 'save-the-city'\ngrid = { actors.n_step = [1.5] }", "actors.n_step must be a whole number, not 1.5"),
        ("task = 'save-the-city'\noptions = { actors.n = 1 }", "actors.n: there is no option 'n' here"),
        ("task = 'mine:Task'", "mine:Task"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused_by_name(written, text, message):
    with pytest.raises(ValueError, match=r"sweep\.toml") as refused:
        read_sweep(written(text))
    assert message in str(refused.value)


def test_code_that_a_file_names_is_trusted_only_if_told(written):
    file = written("task = 'helpers.doors:Doors'")
    assert read_sweep(file, trust=True).task == "helpers.doors:Doors"
    with pytest.raises(ValueError, match=r"helpers\.doors:Doors"):
        read_sweep(file)


def test_what_came_of_a_sweep_is_a_row_for_each_combination(tmp_path):
    runs = Sweep("save-the-city", seeds=(0, 1), grid={"actors.n_step": (1, 3)}).runs(tmp_path)
    for run, rate in zip(runs[:3], (0.2, 0.5, 0.4), strict=True):  # the last one is not finished
        run.job.folder.create(run.job.config)
        finish(run.job, rate)
    first, second = results_of(runs)
    assert (first.options, first.seeds, first.solved.value) == ("actors.n_step=1", (0, 1), pytest.approx(0.3))
    assert (second.options, second.seeds, second.mean_return) == ("actors.n_step=3", (0,), pytest.approx(5.0))
    records = records_of(runs)
    assert [record["run"] for record in records] == [run.job.name for run in runs[:3]]
    assert [record["actors.n_step"] for record in records] == [1, 3, 1]
    assert [record["success_rate"] for record in records] == [0.2, 0.5, 0.4]
