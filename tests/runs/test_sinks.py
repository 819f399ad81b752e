import sys

import pytest

from alma.files import read_json_lines
from alma.runs.sinks import JsonLines, TensorBoard, Wandb


def test_lines_beyond_the_checkpoint_are_written_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    first = JsonLines(path, 0)
    for step in (10, 20, 30):
        first.write(step, {"minutes": 0.5, "loss": step / 10})
    first.close()
    again = JsonLines(path, 20)
    again.write(30, {"minutes": 0.5, "loss": 0.0})
    again.close()
    assert [(line["step"], line["loss"]) for line in read_json_lines(path)] == [(10, 1.0), (20, 2.0), (30, 0.0)]


def test_tensorboard_takes_numbers(tmp_path):
    sink = TensorBoard(tmp_path / "tensorboard", 0)
    sink.write(5, {"loss": 0.5, "by_team_size": {"2": 1}})
    sink.close()
    events = b"".join(path.read_bytes() for path in (tmp_path / "tensorboard").iterdir())
    assert b"loss" in events
    assert b"by_team_size" not in events


class FakeWandb:
    """Remembers how it was called."""

    def __init__(self):
        self.ids = []

    def init(self, **given):
        self.ids.append(given["id"])


def test_a_resumed_run_is_the_same_one_on_weights_and_biases(tmp_path, monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for folder in ("a/run", "a/run", "b/run"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        Wandb(tmp_path / folder, {})
    first, again, other = fake.ids
    assert first == again != other, "folders of the same name elsewhere are other runs"


def test_weights_and_biases_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match=r"pip install 'alma-marl\[wandb\]'"):
        Wandb(tmp_path, {})
