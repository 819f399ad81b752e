"""What is logged is explained."""

import jax
import pytest
from helpers.doors import SMALL, Doors

from alma.runs import metrics
from alma.runs.metrics import METRICS, SUMS, MetricAccumulator
from alma.training.options import with_overrides
from alma.training.trainer import Trainer


@pytest.mark.parametrize("method", ["alma", "copa"])
def test_all_metrics_of_training_are_explained(method):
    options = with_overrides(SMALL, {"actors.imagination": 0.5, "actors.networks.mixer": "sum"})
    trainer = Trainer(Doors(), options, method)
    _, found = jax.eval_shape(lambda: trainer.chunk(trainer.init(jax.random.key(0)), 1))
    accumulator = MetricAccumulator()
    accumulator.add(dict.fromkeys(found, 1.0), 16)
    assert accumulator.metrics().keys() - METRICS.keys() == set()


def test_metrics_of_steps_are_known_to_be_sums():
    """They would be averaged over updates otherwise."""
    trainer = Trainer(Doors(), SMALL)
    _, found = jax.eval_shape(lambda: trainer.step(trainer.init(jax.random.key(0))))
    assert found.keys() - SUMS.keys() == set()
    assert {name for name, _ in SUMS.values()} - METRICS.keys() == set()


def test_a_new_metric_of_steps_needs_nothing_but_a_row_in_the_table(monkeypatch):
    monkeypatch.setattr(metrics, "SUMS", {**SUMS, "shots": ("shots_per_episode", "episodes")})
    accumulator = MetricAccumulator()
    accumulator.add({"episodes": 1, "reward": 0, "updates": 2, "shots": 3}, 4)
    accumulator.add({"episodes": 1, "reward": 0, "updates": 0, "shots": 5}, 4)
    assert accumulator.metrics() == {"episodes": 2, "updates": 2, "reward_per_step": 0, "shots_per_episode": 4}


def test_chunks_are_weighted_by_their_updates():
    accumulator = MetricAccumulator()
    accumulator.add({"episodes": 2, "solved": 1, "reward": 6, "updates": 1, "loss": 1.0}, 4)
    accumulator.add({"episodes": 0, "solved": 0, "reward": 2, "updates": 3, "loss": 5.0}, 4)
    accumulator.add({"episodes": 0, "solved": 0, "reward": 0, "updates": 0, "loss": 0.0}, 8)
    assert accumulator.metrics() == {
        "episodes": 2,
        "updates": 4,
        "reward_per_step": 0.5,
        "solved_while_exploring": 0.5,
        "loss": 4.0,
    }
