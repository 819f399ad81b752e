"""Runs that do not fit into the memory of the machine."""

from dataclasses import replace

import pytest

from alma.runs import memory, runtime
from alma.runs.config import RunConfig
from alma.runs.memory import check_room
from alma.training.options import with_overrides
from alma.training.presets import preset

TINY = preset("tiny", "save-the-city")


def config(**changes):
    return RunConfig("save-the-city", {"agents": 2}, preset="tiny", options=with_overrides(TINY, changes))


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine of 1 GB."""
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**9)


@pytest.fixture
def made_up(monkeypatch):
    """Needs that are known without tracing."""

    def needed(trainer):
        options = trainer.options
        width = options.actors.networks.width
        return 10_000 * (options.actors.batch + options.allocator.batch) + 100 * options.collection.buffer + width**2

    monkeypatch.setattr(memory, "bytes_needed", needed)


def test_a_size_that_cannot_be_is_found_without_compiling():
    check_room(config())
    with pytest.raises(ValueError, match=r"of memory, and there are 1 GB: lower --actors\.batch, for example to 65536"):
        check_room(config(**{"actors.batch": 100_000_000}))


@pytest.mark.parametrize(
    ("name", "asked", "advised"),
    [
        ("actors.batch", 100_000_000, 32_768),  # 0.33 of 1 GB; twice that would be more than half of it
        ("collection.buffer", 100_000_000, 4_194_304),
        ("actors.networks.width", 1_000_000, 16_384),
    ],
)
def test_an_option_to_lower_is_named_with_a_value_that_fits(made_up, name, asked, advised):
    with pytest.raises(ValueError, match=f"lower --{name}, for example to {advised} instead of {asked}$"):
        check_room(config(**{name: asked}))


def test_several_options_are_named_with_values_that_fit(made_up):
    with pytest.raises(ValueError, match=r"to tiny.s for example: --actors\.batch 32 --allocator"):
        check_room(config(**{"actors.batch": 10**8, "allocator.batch": 10**8}))


def test_several_runs_at_a_time_share_the_memory(made_up):
    one = config(**{"collection.buffer": 2_000_000})
    check_room(one)
    with pytest.raises(ValueError, match="about 2 GB of memory, and there are 1 GB: train fewer runs at a time"):
        check_room(one, runs=10)


def test_a_preset_that_does_not_fit(made_up, monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**6)
    with pytest.raises(ValueError, match="choose a smaller preset"):
        check_room(replace(config(), options=TINY))


def test_containers_have_less_memory_than_their_machine(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(runtime, "LIMITS", (limit,))
    there = runtime.machine_memory()
    limit.write_text("max\n")
    assert runtime.machine_memory() == there
    limit.write_text("1000000\n")
    assert runtime.machine_memory() == 1_000_000
