"""`alma bench`."""

import json

from helpers.commandline import run

from alma.cli import bench


def test_benchmarks_print_one_json_object(capsys, monkeypatch):
    monkeypatch.setattr(bench, "benchmark_environment", lambda task, report: {"task": task.spec.name})
    run("bench", "env", "save-the-city", "--json")
    assert json.loads(capsys.readouterr().out) == {"task": "save-the-city"}
    monkeypatch.setattr(bench, "benchmark_training", lambda trainer, report, devices: {"method": trainer.method})
    run("bench", "train", "save-the-city", "--preset", "paper", "--method", "heuristic", "--json")
    assert json.loads(capsys.readouterr().out) == {"preset": "paper", "method": "heuristic"}
