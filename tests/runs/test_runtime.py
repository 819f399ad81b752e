"""Process-wide settings, each looked at in a process of its own."""

import os
import platform
import subprocess
import sys

import pytest

from alma.runs.runtime import cache_folder, cores

CORES = f"{cores()}-cores"
REPORT = "import jax, alma; alma.configure(); print(jax.config.values['jax_compilation_cache_dir'])"


def cache_dir_of_new_process(**variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ALMA_", "JAX_", "XDG_"))}
    run = subprocess.run(
        [sys.executable, "-c", REPORT], env={**clean, **variables}, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


# JAX warns of forks; starting another program is safe.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")


@pytest.mark.skipif(platform.system() != "Linux", reason="the user's cache folder lies elsewhere")
def test_the_cache_is_on_in_the_users_cache_folder(tmp_path):
    assert cache_dir_of_new_process(XDG_CACHE_HOME=str(tmp_path)) == str(tmp_path / "alma" / "xla" / CORES)


def test_the_cache_can_be_moved(tmp_path):
    assert cache_dir_of_new_process(ALMA_CACHE=str(tmp_path)) == str(tmp_path / CORES)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no cores to choose from")
def test_programs_for_other_numbers_of_cores_are_kept_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("ALMA_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 4, 7})
    assert cache_folder() == tmp_path / "3-cores"


@pytest.mark.parametrize("word", ["off", "No", "0"])
def test_the_cache_can_be_switched_off(word):
    assert cache_dir_of_new_process(ALMA_CACHE=word) == "None"


def test_the_users_own_choice_of_jax_cache_stays(tmp_path):
    assert cache_dir_of_new_process(JAX_COMPILATION_CACHE_DIR=str(tmp_path)) == str(tmp_path)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_malloc_takes_the_settings():
    from alma.runs.runtime import tune_malloc

    assert tune_malloc()
