"""Training for equal minutes."""

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


def test_runs_end_with_the_time_and_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare, "QUICK", {**compare.QUICK, **TINY})
    arguments = ["helpers.doors:Doors", "--set", "limit=3", "--methods", "flat", "--seeds", "4", "--minutes", "0"]
    monkeypatch.setattr(sys, "argv", ["compare", *arguments, "--episodes", "8", "--out", str(tmp_path)])
    compare.main()
    run = tmp_path / "flat-4"
    printed = capsys.readouterr().out
    assert f"{run}: stopped at step 32" in printed
    assert "| flat-4 | 32 | " in printed
    policy = alma.load(run, trust=True)
    assert (policy.task.limit, policy.config.seed, policy.config.method) == (3, 4, "flat")
    [found] = read_json(tmp_path / "results.json")["runs"]
    assert found["final"]["episodes"] == 8
    assert [step for step, _, _ in found["curve"]] == [32]
    assert (tmp_path / "curves.png").exists()

    compare.main()  # everything is there
    printed = capsys.readouterr().out
    assert "stopped" not in printed
    assert "| flat-4 | 32 | " in printed
