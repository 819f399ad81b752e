"""`alma watch`."""

import json
import re

import jax
import pytest
from helpers.commandline import run
from helpers.doors import SMALL

from alma.cli import watch
from alma.runs.config import RunConfig
from alma.runs.policy import Policy


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """What an untrained run would save, on a task whose compiling takes seconds."""
    config = RunConfig("helpers.doors:Doors", options=SMALL)
    trainer = config.make_trainer()
    policy = Policy(config, trainer.play_params(trainer.init(jax.random.key(0))))
    return policy.save(tmp_path_factory.mktemp("weights") / "doors.safetensors")


def test_watching_writes_a_page_and_opens_it(weights, tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(watch.webbrowser, "open", lambda url: opened.append(url) or True)
    out = tmp_path / "new" / "replay.html"
    run("watch", weights, "--trust", "--episodes", 2, "--seed", 5, "--against", "heuristic", "--out", out)
    assert opened == [out.as_uri()]
    assert str(out) in capsys.readouterr().out
    story = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text(), re.DOTALL)[1])
    assert (story["task"], story["seed"]) == ("doors", 5)
    assert [side["allocator"] for side in story["sides"]] == ["", "heuristic"]
    assert [len(side["episodes"]) for side in story["sides"]] == [2, 2]
    assert "options" in story["sides"][0]["episodes"][0]["decisions"][0]
    before = out.read_text()
    run("watch", weights, "--trust", "--episodes", 2, "--seed", 5, "--out", out, "--no-open")
    assert out.read_text() != before, "a page that exists is replaced"
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "nowhere"], "there is no run 'nowhere' to watch against: name a run folder or weights, or"),
        (["--allocator", "nowhere"], "there is no run 'nowhere' to allocate"),
        (["--against", "heuristic:magic"], "has no heuristic 'magic'"),
        (["--task", "save-the-city"], "the tasks differ in name"),
        (["--set", "doors=9"], "no option doors"),
        (["--episodes", "0"], "episodes must lie between 1 and"),
        (["--out", "replay.gif"], "the task 'doors' does not say what it looks like"),
    ],
)
def test_mistakes_of_watching_are_told_before_any_work(weights, arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "record", None)
    with pytest.raises(SystemExit) as error:
        run("watch", weights, "--trust", "--no-open", *arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
