"""Training for equal minutes."""

import json
import sys

import alma
from alma.files import read_json
from examples import compare

TINY = {
    "collection.environments": 4,
    "collection.buffer": 256,
    "collection.warmup": 40,
    "collection.steps_per_update": 16,
    "actors.batch": 8,
    "actors.n_step": 1,
    "actors.networks.width": 8,
    "actors.networks.hidden": 8,
    "report.chunk": 32,
    "report.log_every": 32,
    "report.evaluate_every": 32,
    "report.episodes": 4,
}


def test_time_of_the_processor_is_read_as_ps_writes_it():
    written = {"00:00:07": 7, "1:02:03": 3723, "2-03:00:00": 183_600, "0:01.25": 1.25}
    assert {used: compare._seconds(used) for used in written} == written
    before = compare.processor_minutes()
    sum(range(10**6))
    assert before < compare.processor_minutes()


def test_runs_end_with_the_time_and_are_kept(tmp_path, monkeypatch, capsys):
    preset = tmp_path / "tiny.json"
    preset.write_text(json.dumps({"options": TINY}))
    arguments = ["helpers.doors:Doors", "--set", "limit=3", "--methods", "flat", "--seeds", "4", "--minutes", "0"]
    arguments += ["--preset", str(preset), "--episodes", "8", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["compare", *arguments])
    compare.main()
    run = tmp_path / "flat-4"
    printed = capsys.readouterr().out
    assert f"{run}: stopped at step 32" in printed
    assert "| flat-4 | 32 | " in printed
    policy = alma.load(run, trust=True)
    assert (policy.task.limit, policy.config.seed, policy.config.method) == (3, 4, "flat")
    [found] = read_json(tmp_path / "results.json")["runs"]
    assert found["final"]["episodes"] == 8
    assert [(step, minutes) for step, minutes, _ in found["curve"]] == [(32, 0)]
    assert (tmp_path / "curves.png").exists()

    compare.main()  # everything is there
    printed = capsys.readouterr().out
    assert "stopped" not in printed
    assert "| flat-4 | 32 | " in printed
