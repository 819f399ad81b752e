"""Comparing runs of one's own: which belong together, what they are called, and what is written."""

import csv
import json
from dataclasses import replace

import pytest
from helpers.summaries import made_up_result, made_up_summary

from alma.files import write_json
from alma.reproduce.comparing import compare, labels_of
from alma.reproduce.scores import EPISODES, SEED, weights_of
from alma.runs.config import RunConfig, to_json
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS
from alma.training.options import with_overrides
from alma.training.presets import preset


def configured(method="alma", seed=0, changes=None, **settings):
    options = with_overrides(preset(settings.get("preset", "tiny"), "save-the-city"), changes or {})
    return RunConfig(
        **{"task": "save-the-city", "preset": "tiny", **settings}, method=method, seed=seed, options=options
    )


@pytest.fixture
def made_up(tmp_path):
    """Writes a run as a published one is: it solves the first `solved` of ten episodes."""

    def write(name, config, solved, *, finished=True, played=True):
        folder = RunFolder(tmp_path / name)
        folder.create(config)
        marks = "1" * solved + "0" * (10 - solved)
        evaluated = {f"evaluation/{name}": value for name, value in made_up_summary(solved, 10, 1.0).items()}
        folder.metrics.write_text(json.dumps({"step": 20_480, "minutes": 1.5, **evaluated}) + "\n")
        if finished:
            write_json(folder.result, made_up_result(20_480, 2.0, made_up_summary(solved, 10), weights=name))
        elif played:
            (folder.path / WEIGHTS).write_bytes(b"what was learned so far")
        if played:
            (folder.path / "scores").mkdir()
            played_by = {"weights": [weights_of(folder)], "episodes": EPISODES, "seed": SEED}
            summary = made_up_summary(solved, 10, float(solved))
            write_json(
                folder.path / "scores" / "as-trained.json", {"played_by": played_by, **summary, "successes": marks}
            )
        return folder.path

    return write


def test_seeds_of_one_configuration_are_one_line(made_up):
    runs = [made_up(f"alma-{seed}", configured(seed=seed), 6 + 2 * seed) for seed in (0, 1)]
    runs += [made_up(f"flat-{seed}", configured("flat", seed), 5) for seed in (0, 1)]
    comparison = compare(runs)
    assert [(row.label, row.seeds) for row in comparison.rows] == [("ALMA", (0, 1)), ("flat", (0, 1))]
    ours, theirs = comparison.rows
    assert ours.solved.value == pytest.approx(0.7)
    assert ours.solved.low <= 0.7 <= ours.solved.high
    assert theirs.improvement.value == 1, "both seeds of the first method do better"
    assert [point.summary["success_rate"] for point in comparison.curves] == [0.6, 0.8, 0.5, 0.5]


def test_labels_name_what_differs_and_nothing_else():
    common = {"actors.n_step": 2}
    configs = [
        configured(changes=common),
        configured(changes={**common, "allocator.period": 4, "report.episodes": 8}),
        configured("heuristic:nearest-useful", changes=common),
        configured("alma", task="starcraft", changes={"actors.batch": 8}),
    ]
    assert labels_of(configs) == ["ALMA", "ALMA, allocator.period=4", "heuristic:nearest-useful", "ALMA"]
    assert labels_of([configured(), configured(preset="fast")]) == ["ALMA, tiny", "ALMA, fast"]


def test_labels_count_options_if_many_differ():
    def searched(rate, seed=0):
        options = {"actors.n_step": 2, "actors.batch": 8, "actors.learning_rate": rate, "allocator.period": 4}
        return configured(seed=seed, changes={**options, "allocator.entropy": 0.3})

    configs = [configured(), searched(2e-3), searched(3e-3), searched(2e-3, seed=1)]
    assert labels_of(configs) == [
        "ALMA",
        "ALMA, 5 options differ",
        "ALMA, 5 options differ (2)",
        "ALMA, 5 options differ",
    ]


def test_every_task_with_its_options_is_a_panel(made_up):
    runs = [
        made_up("cities", configured(), 5),
        made_up("pairs", configured(task_options={"agents": [2, 2]}), 4),
    ]
    comparison = compare(runs)
    assert [row.panel for row in comparison.rows] == ["SaveTheCity", "save-the-city, agents=[2, 2]"]
    assert [row.improvement for row in comparison.rows] == [None, None], "no run of another task is a rival"


def test_runs_can_be_named_and_found_in_a_folder(made_up, tmp_path):
    made_up("old/a=1", configured(), 4)
    made_up("old/b", configured(seed=1), 4)
    made_up("new", configured(), 8)
    (tmp_path / "old" / "notes").mkdir()
    comparison = compare([f"before={tmp_path / 'old'}", f"after={tmp_path / 'new'}"], reference="after")
    assert [(row.label, row.seeds) for row in comparison.rows] == [("before", (0, 1)), ("after", (0,))]
    assert comparison.rows[0].improvement.value == 1
    assert compare([tmp_path / "old" / "a=1"]).rows[0].label == "ALMA", "an existing folder is no name"


def test_the_same_seed_twice_is_no_second_sample(made_up):
    runs = [made_up(name, configured(), 5) for name in ("first", "again")]
    with pytest.raises(ValueError, match=r"first and .*again have the same options and seed 0.*or name them"):
        compare(runs)
    assert [row.label for row in compare([f"one={runs[0]}", f"two={runs[1]}"]).rows] == ["one", "two"]


@pytest.mark.parametrize(
    ("runs", "reference", "message"),
    [
        (["nothing"], None, "nothing is no run folder, and holds none"),
        ([], None, "at least one run"),
        (["{run}"], "COPA", "no run is called 'COPA': choose a reference from ALMA"),
        (["{new}"], None, "has no weights to play yet"),
    ],
)
def test_what_cannot_be_compared_is_told(made_up, runs, reference, message):
    new = made_up("new", configured(), 0, finished=False, played=False)
    places = {"run": made_up("run", configured(), 5), "new": new}
    with pytest.raises(ValueError, match=message):
        compare([run.format(**places) for run in runs], reference=reference)


def test_the_files_of_a_comparison(made_up, tmp_path):
    runs = [made_up(f"alma-{seed}", configured(seed=seed), 6) for seed in (0, 1)]
    comparison = compare(runs, over="minutes")
    out = tmp_path / "out"
    assert {file.name for file in comparison.write(out)} == {file.name for file in out.iterdir()}
    with (out / "scores.csv").open() as file:
        assert [row["seed"] for row in csv.DictReader(file)] == ["0", "1"]
    with (out / "curves.csv").open() as file:
        assert [float(row["minutes"]) for row in csv.DictReader(file)] == [1.5, 1.5]
    assert (out / "table.md").read_text().startswith("# SaveTheCity\n\n`alma compare`: 2 runs, 0.1 hours of training.")
    assert "minutes of training" in (out / "figure.svg").read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["runs"] == [str(run) for run in runs]
    assert summary["versions"] == [to_json(configured())["versions"]]
    assert "| ALMA | 0, 1 |" in comparison.table
    with pytest.raises(ValueError, match="is a run: choose another folder"):
        comparison.write(runs[0])


def test_runs_that_are_not_finished_count_as_far_as_they_are(made_up):
    run = made_up("begun", replace(configured(), seed=3), 5, finished=False)
    (row,) = compare([run]).rows
    assert (row.seeds, row.steps, row.minutes) == ((3,), 20_480, 1.5)
