"""Training on a simulator, which fails now and then, and which is gone when a run is resumed."""

import json

import pytest

import alma
from alma.runs import benchmark

NAME = "helpers.simulators:PyDoors"
OPTIONS = {
    "steps": 2048,
    "actors.n_step": 1,
    "report.chunk": 1024,
    "report.log_every": 1024,
    "report.evaluate_every": 2048,
    "report.final_episodes": 16,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was trained in one go, with a simulator that dies once."""
    folder = tmp_path_factory.mktemp("runs")
    alma.train(
        NAME,
        out=folder / "run",
        preset="tiny",
        task_options={"workers": 1, "trouble": "dies", "once": str(folder / "once")},
        options=OPTIONS,
    )
    return folder / "run"


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_training_goes_on_when_a_worker_dies(run):
    counted = [line["simulator_faults"] for line in lines(run) if "simulator_faults" in line]
    assert len(counted) == 2
    assert 0 < sum(counted) <= 16  # all episodes of the worker
    result = json.loads((run / "result.json").read_text())
    assert result["step"] == 2048
    assert result["evaluation"]["mean_pushes"] == pytest.approx(result["evaluation"]["mean_return"])


def test_a_run_goes_on_with_new_episodes(run):
    """The workers have ended since: every episode that was in play is cut off, and nothing else is lost."""
    task = alma.load(run, trust=True).task
    task.close()
    alma.resume(run, steps=3072, trust=True)
    last = [line for line in lines(run) if "episodes" in line][-1]
    assert last["step"] == 3072
    assert last["simulator_faults"] == 0
    assert last["episodes"] >= 16


def test_a_policy_plays_and_is_shown(run, tmp_path):
    policy = alma.load(run, trust=True)
    results = alma.evaluate(policy, episodes=4)
    assert (results.length <= 8).all()
    by_rule = alma.evaluate(policy, episodes=4, actors="push", allocator="heuristic:first")
    assert by_rule.success_rate == 1.0
    assert alma.watch(policy, episodes=1, out=tmp_path / "page.html").stat().st_size > 10_000
    policy.task.close()


def test_the_benchmark_tells_how_much_of_the_speed_is_left(monkeypatch):
    monkeypatch.setattr(benchmark, "SIMULATORS", (2, 3))
    monkeypatch.setattr(benchmark, "SIMULATOR_STEPS", 12)
    task = alma.make(NAME, workers=1)
    result = benchmark.benchmark_environment(task, report=lambda text: None)
    assert [batch["environments"] for batch in result["batches"]] == [2, 3]
    for batch in result["batches"]:
        assert batch["workers"] == 1
        assert batch["slowest"] <= batch["steps_per_second"] <= batch["fastest"]
        assert batch["kept"] > 0
        assert batch["simulator_steps_per_second"] > 0
    task.close()


def test_shares_of_training_time(monkeypatch):
    """200 steps a second: of 5 ms for each, 1 ms is the simulator's own, and 0.25 ms more are needed to reach it."""
    timed = {"simulator_steps_per_second": 1000, "kept": 0.8}
    monkeypatch.setattr(benchmark, "_time_simulators", lambda task, environments: timed)
    shares = benchmark.shares_of_simulators(alma.make(NAME), 4, steps_per_second=200.0)
    assert shares == {"share_of_simulators": 0.2, "share_of_copying_at_most": 0.05}
