"""Runs in processes of this machine: their cores, their end, and what they are told."""

import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.example import FIGURE
from rich.console import Console

from alma.launch import launcher, local, worker
from alma.launch.job import Job
from alma.launch.launcher import train_all
from alma.launch.local import Local, accelerators, shares
from alma.launch.worker import Order
from alma.reproduce.running import Budget, plan

FINISHES = "import pathlib; pathlib.Path('result.json').write_text('{}')"
SLEEPS = "import time; time.sleep(60)"


@pytest.fixture
def runs(tmp_path):
    return plan([FIGURE], Budget("tiny", steps=2048), tmp_path)


@pytest.fixture
def pretend(monkeypatch):
    """Lets all runs be a short script, run in their folder, instead of training."""
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.02)

    def use(script):
        plain = subprocess.Popen

        def popen(words, **options):
            if "alma" not in words:  # such as git, which is asked for the version
                return plain(words, **options)
            at = words.index("alma")
            folder = words[at + 2]
            return plain([*words[: at - 1], "-c", script, *words[at:]], **{**options, "cwd": folder})

        monkeypatch.setattr(worker.subprocess, "Popen", popen)

    return use


def quiet():
    return Console(stderr=True, force_terminal=False)


def test_a_run_keeps_to_its_cores_from_the_beginning(runs, pretend):
    pretend("import os; print(sorted(os.sched_getaffinity(0)), flush=True); " + FINISHES)
    assert train_all(runs[:2], Local(2), quiet()) == []
    printed = [run.folder.log.read_text().strip() for run in runs[:2]]
    assert sorted(printed) == sorted(str(sorted(share.cores)) for share in shares(2, None, 0))


def test_what_processes_print_is_in_their_log(runs, pretend):
    pretend("import sys; print(sys.argv[1:]); sys.exit('the reason')")
    [failed] = train_all(runs[:1], Local(), quiet())
    assert failed == f"{runs[0].name}: the reason (see {runs[0].folder.log})"
    words = ["alma", "resume", str(runs[0].folder.path), "--quiet", "--trust"]  # the task is one of our own
    assert str(words) in runs[0].folder.log.read_text()


def test_further_arguments_are_passed_on(runs, pretend):
    pretend("import sys; print(sys.argv[-1]); " + FINISHES)
    job = Job(runs[0].folder, runs[0].config, ("--wandb",))
    assert train_all([job], Local(), quiet()) == []
    assert job.folder.log.read_text() == "--wandb\n"


DIES_ONCE = """
import os, pathlib
if not pathlib.Path("seen").exists():
    open("seen", "w")
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_is_started_again(runs, pretend):
    pretend(DIES_ONCE + FINISHES)
    assert train_all(runs[:1], Local(), quiet()) == []
    assert (runs[0].folder.path / "seen").exists()


def test_seats_are_given_to_the_next_run(runs, pretend, monkeypatch):
    given, start = [], local.start_process

    def remember(folder, arguments, cores, environment):
        given.append(cores)
        return start(folder, arguments, cores, environment)

    pretend(FINISHES)
    monkeypatch.setattr(local, "start_process", remember)
    assert train_all(runs, Local(2), quiet()) == []
    assert sorted(map(sorted, given)) == sorted(2 * [sorted(share.cores) for share in shares(2, None, 0)])


STARTS_AND_DIES = """
import os, sys
from pathlib import Path
from alma.launch import worker
from alma.runs.folder import RunFolder
popen = worker.subprocess.Popen
worker.subprocess.Popen = lambda words, **options: popen([*words[:6], "-c", "import time; time.sleep(60)"], **options)
print(worker.start_process(RunFolder(Path(sys.argv[1])), (), [], {}).pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes end with their parent on Linux alone")
def test_a_process_ends_with_the_one_that_started_it(runs):
    """Whatever ended that one: so no run trains on without anybody who knows of it."""
    runs[0].folder.create(runs[0].config)
    words = [sys.executable, "-c", STARTS_AND_DIES, str(runs[0].folder.path)]
    died = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    child, deadline = int(died.stdout), time.monotonic() + 30
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(child)


def test_files_in_the_working_directory_are_no_modules(runs, tmp_path, monkeypatch):
    """A folder of somebody else's may have files that are named like modules of Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "safetensors.py").write_text("open('sprung', 'w').close()\n")
    runs[0].folder.path.mkdir(parents=True, exist_ok=True)
    assert worker.start_process(runs[0].folder, (), [], {}).wait() == 1
    assert "is not a run folder" in runs[0].folder.log.read_text()
    assert not (tmp_path / "sprung").exists()


def _lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as file:  # one that nobody waits for is dead too
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_each_run_gets_the_accelerators_it_asks_for(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,GPU-7,1")
    assert [share.environment for share in shares(2, None, 2)] == [
        {"CUDA_VISIBLE_DEVICES": "3,5"},
        {"CUDA_VISIBLE_DEVICES": "GPU-7,1"},
    ]
    assert [share.environment for share in shares(2, None, 0)] == [{}, {}], "as they were"
    with pytest.raises(ValueError, match="3 jobs with 2 accelerators each need 6, and there are 4"):
        shares(3, None, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert accelerators() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs must be at least 1, not 0"),
        ({"jobs": 2, "memory": 1e6}, "2 jobs with 1e\\+06 GB each do not fit into"),
        ({"cores": 10_000}, "1 jobs with 10000 cores each need 10000, and there are"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Local(**arguments)


def test_an_order_is_for_a_folder_that_is_there(runs, tmp_path):
    with pytest.raises(FileNotFoundError, match="must be on storage that all machines share"):
        Order(str(tmp_path / "nowhere"), (), 1).carry_out()


def test_a_finished_run_is_not_trained_again_elsewhere(runs, pretend):
    pretend("raise SystemExit(1)")
    runs[0].folder.create(runs[0].config)
    runs[0].folder.result.write_text("{}")
    assert Order.for_job(runs[0], 1).carry_out() == 0


def test_whatever_interrupts_an_order_ends_its_process(runs, pretend, monkeypatch):
    pretend(SLEEPS)
    started = []
    start = worker.start_process
    monkeypatch.setattr(worker, "start_process", lambda *words: started.append(start(*words)) or started[0])
    monkeypatch.setattr(worker.time, "sleep", lambda seconds: (_ for _ in ()).throw(KeyboardInterrupt))
    runs[0].folder.create(runs[0].config)
    with pytest.raises(KeyboardInterrupt):
        Order.for_job(runs[0], 1).carry_out()
    assert started[0].poll() in (-signal.SIGTERM, 1)


def test_settings_of_this_process_go_with_an_order(runs, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--these")
    monkeypatch.setenv("SECRET", "not this one")
    environment = Order.for_job(runs[0], 1).environment
    assert environment["XLA_FLAGS"] == "--these"
    assert "SECRET" not in environment
