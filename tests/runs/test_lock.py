"""One process at a time trains in a folder, on whatever host; who died is taken over."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict

import pytest

from alma.runs import lock as module
from alma.runs.lock import STALE_SECONDS, FolderInUseError, Holder, living_holder, locked, recorded_holder

ELSEWHERE = Holder("node17", 4242, "abc")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(module, "TRY_SECONDS", 0.001)


def write(path, holder, silence):
    """A lock whose last heartbeat is so many seconds ago."""
    path.write_text(json.dumps(asdict(holder)))
    then = time.time() - silence
    os.utime(path, (then, then))


def test_a_lock_says_who_has_it(path):
    with locked(path) as lock:
        assert (lock.holder.host, lock.holder.process) == (socket.gethostname(), os.getpid())
        assert living_holder(path) == recorded_holder(path) == lock.holder
    assert living_holder(path) is recorded_holder(path) is None


def test_nobody_has_a_lock_that_is_not_there(path):
    assert living_holder(path) is None
    assert not path.exists()


def test_two_processes_do_not_have_one_lock(path):
    with (
        locked(path),
        pytest.raises(FolderInUseError, match=f"is being trained by process {os.getpid()} on"),
        locked(path),
    ):
        pass
    with locked(path):
        pass


def test_the_lock_of_a_process_that_died_here_is_taken_over_at_once(path):
    script = (
        "import os, sys; from pathlib import Path; from alma.runs.lock import locked\n"
        "with locked(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    before, told = recorded_holder(path), []
    assert before is not None
    assert living_holder(path) is None
    with locked(path, told.append):
        assert recorded_holder(path).process == os.getpid()
    assert told == [f"taking over the lock of {before}, which has died: its last sign of life was 0 s ago"]


def test_a_process_on_another_host_lives_as_long_as_its_heart_beats(path):
    """Although the kernel of this host knows of no lock, as on some network file systems."""
    write(path, ELSEWHERE, STALE_SECONDS / 2)
    assert living_holder(path) == ELSEWHERE
    with pytest.raises(FolderInUseError, match="is being trained by process 4242 on node17"), locked(path):
        pass
    assert recorded_holder(path) == ELSEWHERE


def test_a_stale_lock_of_another_host_is_taken_over_and_that_is_told(path):
    write(path, ELSEWHERE, 2 * STALE_SECONDS)
    assert living_holder(path) is None
    told = []
    with locked(path, told.append) as lock:
        lock.check()
    assert told == [
        "taking over the lock of process 4242 on node17, which has died: its last sign of life was 120 s ago"
    ]


def test_of_two_hosts_that_take_over_at_once_one_goes_on(path, monkeypatch):
    write(path, ELSEWHERE, 2 * STALE_SECONDS)
    faster = Holder("node18", 1, "def")
    monkeypatch.setattr(module.time, "sleep", lambda seconds: path.write_text(json.dumps(asdict(faster))))
    with pytest.raises(FolderInUseError, match="was taken over by process 1 on node18"), locked(path):
        pass
    assert recorded_holder(path) == faster


def test_who_was_taken_over_while_it_was_suspended_notices_and_leaves_the_lock_alone(path):
    with locked(path) as lock:
        path.write_text(json.dumps(asdict(ELSEWHERE)))
        with pytest.raises(FolderInUseError, match="was taken over by process 4242 on node17: this process stops"):
            lock.check()
    assert recorded_holder(path) == ELSEWHERE


def test_the_heart_beats_while_the_lock_is_held(path, monkeypatch):
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
    with locked(path):
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 0


def test_a_heart_does_not_beat_for_another_process(path):
    with locked(path) as lock:
        write(path, ELSEWHERE, 100)
        before = path.stat().st_mtime
        lock.beat()
        assert path.stat().st_mtime == before


@pytest.mark.parametrize("content", ["", "{}", "damaged", '{"host": "node17"}'])
def test_a_lock_that_names_nobody_is_free(path, content):
    path.write_text(content)
    with locked(path) as lock:
        assert recorded_holder(path) == lock.holder


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("precious")
    (tmp_path / "lock").symlink_to(mine)
    with pytest.raises(OSError, match="lock"), locked(tmp_path / "lock"):
        pass
    assert mine.read_text() == "precious"
