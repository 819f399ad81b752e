"""Training for equal minutes."""

import sys

import pytest

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
    "allocator.batch": 8,
    "report.chunk": 32,
    "report.evaluate_every": 32,
    "report.episodes": 4,
}


def test_runs_end_with_the_time_and_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare, "QUICK", {**compare.QUICK, **TINY})
    monkeypatch.setattr(
        compare.alma, "compare", lambda runs: pytest.fail("nothing to compare") if not runs else Table()
    )
    arguments = ["helpers.doors:Doors", "--set", "limit=3", "--methods", "flat", "--seeds", "4", "--minutes", "0"]
    monkeypatch.setattr(sys, "argv", ["compare", *arguments, "--out", str(tmp_path)])
    compare.main()
    run = tmp_path / "flat-4"
    assert f"{run}: stopped at step 32" in capsys.readouterr().out
    policy = alma.load(run)
    assert (policy.task.limit, policy.config.seed, policy.config.method) == (3, 4, "flat")
    before = read_json(run / "config.json")
    compare.main()
    assert "stopped" not in capsys.readouterr().out
    assert read_json(run / "config.json") == before


class Table:
    """In the place of a comparison, which is tested elsewhere."""

    table = "a table"

    def write(self, out):
        pass
