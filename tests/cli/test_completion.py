"""Shell completion."""

import shutil
import subprocess

import pytest
from helpers.commandline import run

from alma.cli.main import COMMANDS

COMPLETE = """
COMP_WORDS=(alma "$@"); COMP_CWORD=$#
_tyro_alma alma "${COMP_WORDS[$COMP_CWORD]}"
printf "%s\\n" "${COMPREPLY[@]}"
"""


def script_for(capsys, shell):
    with pytest.raises(SystemExit) as stopped:
        run("--print-completion", shell)
    assert not stopped.value.code
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_flags_and_values(capsys, tmp_path):
    script = tmp_path / "completion"
    script.write_text(script_for(capsys, "bash") + COMPLETE)

    def completed(*words):
        return subprocess.run(["bash", script, *words], capture_output=True, text=True, check=True).stdout.split()

    assert set(COMMANDS) <= set(completed(""))
    assert completed("train", "--allocator.play-p") == ["--allocator.play-period"]
    assert completed("train", "save-the-city", "--preset", "f") == ["fast", "faithful"]
    assert completed("sweep", "save-the-city", "--preset", "t") == ["tiny"]
    assert completed("bench", "e") == ["env"]


def test_zsh_is_told_all_commands(capsys):
    script = script_for(capsys, "zsh")
    assert script.startswith("#compdef alma")
    assert all(name in script for name in COMMANDS)


@pytest.mark.parametrize("shells", [(), ("tcsh",), ("bash", "zsh")])
def test_other_shells_are_refused(shells):
    with pytest.raises(SystemExit, match="alma: completion is for two shells: alma --print-completion bash, or zsh"):
        run("--print-completion", *shells)
