"""Ctrl-C and lost displays, as programs of their own meet them."""

import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager

TASK = ("helpers.doors:Doors",)
TINY = (*TASK, "--preset", "tiny", "--quiet")
PATIENCE = 120
"""Seconds for a slow machine; on a fast one, these tests take a few."""


@contextmanager
def alma(*arguments, python=(), **streams):
    """The program in a process of its own; `python` are options of the interpreter."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, *python, "-m", "alma", *map(str, arguments)]
    with subprocess.Popen(command, text=True, env=environment, start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupted(process, said=""):
    """What was printed before and after Ctrl-C, which is pressed once a line with `said` is there; and the status."""
    before = []
    while said not in (line := process.stderr.readline()):
        assert line, before
        before.append(line)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    return rest, process.wait(PATIENCE)


def test_ctrl_c_is_answered_while_everything_is_imported():
    telling = ("-X", "importtime")  # a line for each module that has been imported
    with alma("tasks", python=telling, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        told, status = interrupted(process, said="alma.cli.starting")
    assert "stopped before anything was begun" in told
    assert "Traceback" not in told
    assert status == 130


def test_ctrl_c_ends_what_has_nothing_to_save():
    with alma("play", *TASK, "--episodes", 10**7, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        told, status = interrupted(process, said="compiling")
    assert (told, status) == ("stopped\n", 130)


def test_ctrl_c_ends_training_that_is_still_compiling(tmp_path):
    with alma("train", *TINY, "--out", tmp_path / "run", stderr=subprocess.PIPE) as process:
        told, status = interrupted(process, said="compiling")
    assert told == f"stopped while compiling; go on with: alma resume {tmp_path / 'run'} --trust\n"
    assert status == 130


def test_closed_streams_lead_nowhere(tmp_path):
    """As a daemon has them. What libraries print must not go into files that would get their numbers."""
    words = [sys.executable, "-m", "alma", "train", *TINY, "--steps", "2048", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    closed = subprocess.run(f"{shlex.join(words)} <&- >&- 2>&-", shell=True, env=environment, check=False)
    assert closed.returncode == 0
    assert (tmp_path / "run" / "result.json").exists()


def test_a_lost_display_does_not_cost_the_run(tmp_path):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with alma("train", *TINY, "--steps", 2048, "--out", tmp_path / "run", **streams) as process:
        assert process.stdout.readline()
        process.stdout.close()  # as `head -1` does
        process.wait(PATIENCE)
    assert (tmp_path / "run" / "result.json").exists()
