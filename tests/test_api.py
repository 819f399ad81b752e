"""The public names, and training, evaluating and watching from Python."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.doors import SMALL, Doors

import alma
from alma.runs.folder import RunFolder

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
DOORS = "helpers.doors:Doors"
OPTIONS = {
    "steps": 1_280,
    "report.chunk": 256,
    "report.final_episodes": 16,
    "report.evaluate_every": 100_000,
    "allocator.period": 2,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    seen = []
    out = tmp_path_factory.mktemp("runs") / "doors"
    policy = alma.train(DOORS, out=out, preset="tiny", seed=3, options=OPTIONS, on_progress=seen.append)
    return policy, out, seen


def test_training_leaves_a_run_and_gives_its_policy(trained):
    policy, out, seen = trained
    config = RunFolder(out).read_config(trust=True)
    assert (config.task, config.method, config.preset, config.seed) == (DOORS, "alma", "tiny", 3)
    assert (config.options.steps, config.options.allocator.period) == (1_280, 2)
    assert policy.config == config
    assert [progress.step for progress in seen] == [256, 512, 768, 1_024, 1_280]


def test_actors_can_be_chosen_as_on_the_command_line(monkeypatch, tmp_path):
    monkeypatch.setattr(alma.api, "_train", lambda folder, config, *_: alma.Policy(config, {}))

    def imagination(task, **chosen):
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        return alma.train(task, out=out, **chosen).config.options.actors.imagination

    assert imagination("starcraft", actors="aqmix") == 0
    assert imagination("save-the-city", actors="refil") == 0.5
    assert imagination("save-the-city", actors="refil", options={"actors.imagination": 0.25}) == 0.25


def test_a_run_is_never_overwritten_unasked(trained):
    _, out, _ = trained
    with pytest.raises(ValueError, match="exists already"):
        alma.train(DOORS, out=out, preset="tiny", options=OPTIONS)


def test_a_finished_run_can_be_continued(trained):
    _, out, _ = trained
    seen = []
    alma.resume(out, trust=True, steps=1_536, on_progress=seen.append)
    assert [progress.step for progress in seen] == [1_536]


def test_evaluation_takes_a_policy_or_its_folder(trained):
    policy, _, _ = trained
    results = alma.evaluate(policy, episodes=32, seed=5)
    assert results.success_rate == results.success.mean() == results.summary()["success_rate"]
    assert len(results.length) == 32
    again = alma.evaluate("pretrained:save-the-city", episodes=2, task_options={"max_steps": 3})
    assert (again.length <= 3).all()


def test_other_allocators_and_actors_can_be_evaluated(trained):
    policy, _, _ = trained
    best = alma.evaluate(policy, episodes=32, actors="scripted", allocator="heuristic:owner")
    assert best.success_rate == 1
    with pytest.raises(ValueError, match="no heuristic 'magic'"):
        alma.evaluate(policy, episodes=2, allocator="heuristic:magic")


def test_a_policy_can_be_watched(tmp_path):
    page = alma.watch(
        "pretrained:save-the-city", out=tmp_path / "replay.html", episodes=1, task_options={"max_steps": 5}
    )
    assert page == tmp_path / "replay.html"
    assert "save-the-city" in page.read_text()
    with pytest.raises(ValueError, match=r"a page ends in \.html, not in '.gif'"):
        alma.watch("pretrained:save-the-city", out=tmp_path / "replay.gif")


def test_a_page_says_who_plays(trained, tmp_path):
    policy, out, _ = trained

    def side(of, **replaced):
        page = alma.watch(of, out=tmp_path / "replay.html", episodes=1, trust=True, **replaced)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
        return data["sides"][0]

    assert side(out)["label"] == str(out)
    shown = side(policy, actors="scripted", allocator=policy)
    assert shown["label"] == f"{DOORS}, alma, seed 3, actors: scripted"
    assert (shown["method"], shown["allocator"]) == ("alma", f"{DOORS}, alma, seed 3")


def test_tasks_override_options_of_presets(monkeypatch):
    from alma.task import registry

    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    alma.register("doors", Doors, lambda task: task, overrides={"tiny": {"actors.gamma": 0.5}})
    assert alma.preset("tiny", "doors") == replace(
        alma.preset("tiny"), actors=replace(alma.preset("tiny").actors, gamma=0.5)
    )
    assert alma.preset("fast", "doors") == alma.preset("fast")
    assert isinstance(alma.make("doors", limit=3), Doors)
    assert SMALL


def documented_names():
    """What code and prose of the documentation take from the package."""
    for page in PAGES:
        text = page.read_text()
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and node.module == "alma":
                    yield from (name.name for name in node.names)
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "alma":
                    yield node.attr
        yield from re.findall(r"`alma\.([A-Za-z_]+)\(", text)


def test_what_the_documentation_uses_is_public():
    assert set(documented_names()) <= set(alma.__all__)
    assert all(hasattr(alma, name) for name in alma.__all__)


def test_documentation_imports_from_the_package_itself_alone():
    """Other modules may change between versions; those of the tasks are named where tasks are explained.

    `alma.pettingzoo` is public too, but needs an extra.
    """
    for page in PAGES:
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            modules = re.findall(r"^(?:from|import) (alma[\w.]*)", code, re.MULTILINE)
            public = [name in ("alma", "alma.pettingzoo") or name.startswith("alma.tasks.") for name in modules]
            assert all(public), page.name


def test_every_public_name_is_explained():
    for name in alma.__all__:
        thing = getattr(alma, name)
        assert name == "NOBODY" or (thing.__doc__ or "").strip(), name


def test_importing_changes_no_settings():
    code = (
        "import jax; before = dict(jax.config.values); import alma; "
        "assert before == dict(jax.config.values), 'importing alma changed settings of JAX'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_results_are_plain_arrays(trained):
    results = alma.evaluate(trained[0], episodes=4)
    assert isinstance(results.total, np.ndarray)
    assert results.mean_return == pytest.approx(results.total.mean())
