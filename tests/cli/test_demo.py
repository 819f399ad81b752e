"""`alma demo`."""

import pytest
from helpers.commandline import run


def test_the_demo_trains_and_draws(capsys, tmp_path):
    run("demo", "--preset", "tiny", "--steps", 1024, "--episodes", 8, "--out", tmp_path)
    printed = capsys.readouterr()
    assert "solved 0.0% before" in printed.out.replace("\n", "")
    assert "steps, 0:0" in printed.err, "lines, since this is no terminal"
    assert (tmp_path / "save-the-city.gif").stat().st_size > 0
    assert (tmp_path / "run" / "result.json").exists()
    with pytest.raises(SystemExit, match="exists already"):
        run("train", "save-the-city", "--out", tmp_path / "run")
