"""Runs as jobs of SLURM, by submitit's local executor: it treats processes of this machine as SLURM treats jobs."""

import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from helpers.runs import TESTS, ending, short_runs
from rich.console import Console

from alma.launch.job import Resources
from alma.launch.launcher import train_all
from alma.launch.local import Local
from alma.launch.slurm import Slurm, Submission, require_submitit
from alma.launch.worker import Order
from alma.runs.lock import recorded_holder

submitit = pytest.importorskip("submitit", reason="submitit is not installed: pip install 'alma-marl[slurm]'")
SECONDS = 300


def quiet():
    return Console(file=io.StringIO())


def engine(folder, **options):
    return Slurm(Resources(cores=1), folder / "slurm", cluster="local", **options)


def test_runs_end_as_on_this_machine_although_one_is_killed(tmp_path, monkeypatch):
    monkeypatch.chdir(TESTS)
    jobs, said = short_runs(tmp_path / "slurm", 2), io.StringIO()

    def kill_first():
        until = time.monotonic() + SECONDS
        while not jobs[0].folder.saved() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(recorded_holder(jobs[0].folder.lock).process, signal.SIGKILL)

    killer = threading.Thread(target=kill_first)
    killer.start()
    assert train_all(jobs, engine(tmp_path, jobs=1), Console(file=said)) == []
    killer.join()
    assert "its process was killed by signal 9; it is started again" in said.getvalue().replace("\n", " ")
    here = short_runs(tmp_path / "local", 2)
    assert train_all(here, Local(jobs=1, cores=1), quiet()) == []
    assert [ending(job) for job in jobs] == [ending(job) for job in here]


def test_a_job_whose_time_is_over_saves_and_goes_on_as_another_job(tmp_path, monkeypatch):
    monkeypatch.chdir(TESTS)
    [job] = short_runs(tmp_path, 1)
    job.folder.create(job.config)
    submission = Submission(Order.for_job(job, 1))
    process = subprocess.Popen([sys.executable, "-c", CARRY_OUT, *map(str, (job.folder.path, TESTS))])
    until = time.monotonic() + SECONDS
    while not job.folder.saved() and time.monotonic() < until:
        time.sleep(0.01)
    again = submission.checkpoint()
    saved = job.folder.saved()[0]
    assert isinstance(again, submitit.helpers.DelayedSubmission)
    assert again.function == submission
    assert process.wait(SECONDS) == 130, "stopped, and saved"
    assert job.folder.saved()[0] == saved
    assert not job.done


CARRY_OUT = """
import os, sys
os.chdir(sys.argv[2])
from alma.launch.worker import Order
sys.exit(Order(sys.argv[1], ("--trust",), 1).carry_out())
"""


def test_there_must_be_a_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"--engine slurm: .*(sbatch|srun|slurm)"), Slurm(Resources(1), tmp_path):
        pass


def test_options_of_sbatch_must_be_known(tmp_path):
    with pytest.raises(ValueError, match=r"--engine slurm: .*nosuch"), engine(tmp_path, options={"nosuch": 1}):
        pass


def test_that_submitit_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ValueError, match=r"--engine slurm needs an extra: pip install 'alma-marl\[slurm\]'"):
        require_submitit()
