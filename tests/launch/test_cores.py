"""Which processor cores runs get."""

import os
import subprocess
import sys

import pytest

from alma.launch import cores as module
from alma.launch.cores import reserved_cores, share_out_cores


@pytest.mark.parametrize(
    ("cores", "jobs", "shares"),
    [
        ({0, 1}, 1, [{0, 1}]),
        ({0, 1}, 2, [{0}, {1}]),
        ({2, 5, 7}, 2, [{2}, {5}]),
        ({0, 1}, 3, [{0, 1}, {0, 1}, {0, 1}]),
    ],
)
def test_every_job_has_cores_of_its_own_where_there_are_enough(monkeypatch, cores, jobs, shares):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores, raising=False)
    assert share_out_cores(jobs) == shares


def test_jobs_get_as_many_cores_as_they_ask_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 4}, raising=False)
    assert share_out_cores(2, 2) == [{0, 1}, {2, 3}]
    with pytest.raises(ValueError, match="3 jobs with 2 cores each need 6, and there are 5: choose fewer"):
        share_out_cores(3, 2)


def test_where_cores_are_not_told_none_are_named(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert share_out_cores(2) == [frozenset(), frozenset()]


@pytest.fixture
def four_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "available_cores", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))


def test_reserved_cores_are_nobody_elses(four_cores):
    with reserved_cores(1) as first, reserved_cores(2) as second:
        assert (first, second) == ({0}, {1, 2})
        with reserved_cores(3) as third:
            assert third == {0, 1, 3}, "one is free, and two are shared"
    with reserved_cores(1) as again:
        assert again == {0}


def test_reserved_cores_are_free_when_their_process_has_died(four_cores, tmp_path):
    script = (
        "import os, signal, tempfile; from alma.launch import cores; "
        f"cores.available_cores = lambda: [0, 1, 2, 3]; tempfile.gettempdir = lambda: {str(tmp_path)!r}\n"
        "with cores.reserved_cores(2) as mine: print(sorted(mine), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    assert died.stdout.strip() == "[0, 1]"
    with reserved_cores(2) as mine:
        assert mine == {0, 1}
