import jax.numpy as jnp
from helpers.doors import SMALL, Doors

import alma
from alma.runs import benchmark
from alma.training.options import with_overrides
from alma.training.trainer import Trainer


def test_the_environment_benchmark_reports_every_batch_size(monkeypatch):
    monkeypatch.setattr(benchmark, "BATCH_SIZES", (2, 4))
    lines = []
    result = benchmark.benchmark_environment(alma.make("save-the-city"), steps=3, repeats=2, report=lines.append)
    rates = {batch["environments"]: batch["steps_per_second"] for batch in result["batches"]}
    assert set(rates) == {2, 4}
    assert result["steps_per_second"] == max(rates.values()) == rates[result["best_batch"]] > 0
    assert result["state_bytes"] == 107
    assert result["compile_seconds"] > 0
    assert len(lines) == 2


def test_bytes_of_a_tree():
    assert benchmark.tree_bytes({"a": jnp.zeros((2, 3)), "b": jnp.zeros(5, jnp.int8)}) == 29


def test_the_training_benchmark_reports_both_levels(monkeypatch):
    monkeypatch.setattr(benchmark, "MINIMUM_SECONDS", 0.0)
    options = with_overrides(SMALL, {"report.chunk": 640})
    result = benchmark.benchmark_training(Trainer(Doors(), options), repeats=1, report=lambda text: None)
    assert result["minutes_per_million_steps"] > 0
    assert result["steps_per_update"] == 32
    assert result["actor_update_seconds"] > 0
    assert result["allocator_update_seconds"] > 0
    assert result["replay_mb"] > 0
