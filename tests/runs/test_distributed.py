"""Processes of one run: how they meet, and what is said of one that is lost. `test_devices.py` trains with them."""

import jax
import pytest

from alma.runs import distributed
from alma.runs.distributed import PartnerLostError, in_any_process, is_writer, join_run, partners_watched, writer_first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("127.0.0.1:1", 2, None), "--coordinator, --processes and --process belong together"),
        ((None, 2, 0), "--coordinator, --processes and --process belong together"),
        (("127.0.0.1:1", 2, 2), "--process must lie between 0 and 1, not 2"),
    ],
)
def test_processes_are_told_everything_or_nothing(arguments, message):
    with pytest.raises(ValueError, match=message):
        join_run(*arguments)


def test_where_nothing_tells_which_process_this_is_the_flags_are_named(monkeypatch):
    def initialize(*_, **__):
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    with pytest.raises(ValueError, match=r"did not meet: .*; without SLURM, Open MPI or Kubernetes give"):
        join_run()


def test_a_process_alone_writes_and_decides():
    acted = []
    writer_first(lambda: acted.append(1))
    assert acted == [1]
    assert is_writer()
    assert in_any_process(True)
    assert not in_any_process(False)


@pytest.fixture
def two_processes(monkeypatch):
    monkeypatch.setattr(distributed.jax, "process_count", lambda: 2)


def test_an_error_of_communication_says_how_to_go_on(two_processes):
    with (
        pytest.raises(PartnerLostError, match=r"start all of them again with: alma resume run .*\(UNKNOWN: reset"),
        partners_watched("alma resume run --distributed"),
    ):
        raise RuntimeError("UNKNOWN: reset by peer")


def test_errors_of_our_own_stay_what_they_are(two_processes):
    with pytest.raises(ValueError, match=r"^a loss is not finite$"), partners_watched("alma resume run"):
        raise ValueError("a loss is not finite")
