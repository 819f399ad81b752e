"""The code in the documentation runs, and its numbers are those of the published tables."""

import inspect
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.doors import SMALL, Doors

import alma
from alma.reproduce.figures import FIGURES
from alma.runs.config import RunConfig
from alma.task import registry
from alma.training.options import with_overrides
from alma.training.presets import preset
from alma.training.trainer import Trainer

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SNIPPETS = [
    pytest.param(code, id=f"{path.name}-{i}")
    for path in [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


def train_at_once(*arguments, **keywords):
    """In the place of `alma.train`: checks everything that is asked for, and answers with weights that come with alma.

    Real trainings are tested elsewhere.
    """
    asked = inspect.signature(real_train).bind(*arguments, **keywords)
    asked.apply_defaults()
    given = asked.arguments
    options = with_overrides(preset(given["preset"], given["task"]), given["options"] or {})
    config = RunConfig(given["task"], given["task_options"] or {}, given["method"], given["preset"], 0, options)
    _ = config.make_trainer()
    if given["on_progress"]:
        given["on_progress"](alma.Progress(5_120, options.steps, 1.0, 5_120.0, {"actor_loss": 0.5}, []))
    return alma.load("pretrained:save-the-city")


real_train, real_evaluate = alma.train, alma.evaluate


def evaluate_briefly(policy, *, episodes=512, **keywords):
    """In the place of `alma.evaluate`: fewer episodes."""
    return real_evaluate(policy, episodes=min(episodes, 8), **keywords)


@pytest.fixture
def example_folder(tmp_path, monkeypatch):
    """A current folder with the runs that the documentation speaks of."""
    monkeypatch.chdir(tmp_path)
    for name in ("alma_fast_0", "alma_fast_1", "flat_fast_0"):
        method, _, seed = name.split("_")
        run = tmp_path / "runs" / f"{method.replace('alma', 'city')}-{seed}"
        shutil.copytree(ROOT / "results" / "runs" / f"save-the-city_{name}", run)


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippets_run(code, monkeypatch, capsys, example_folder):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    monkeypatch.setattr(alma, "train", train_at_once)
    monkeypatch.setattr(alma, "evaluate", evaluate_briefly)
    if "import alma" not in code and "from alma" not in code:
        code = "import alma\n" + code
    exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})


def test_the_task_of_ones_own_looks_like_something(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    named = {"__name__": "own"}
    text = (DOCS / "guides" / "own-task.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "own", "exec"), named)
    task = type("Drawn", (named["Doors"],), {"scene": named["scene"]})()
    scene = task.scene({"left": np.array([2, 0, 1])})
    assert [thing.name for thing in scene.markers] == ["opener"] * 2 + ["door"] * 3
    assert scene.standing == ("2 pushes left", "open", "1 pushes left")


@pytest.mark.parametrize("name", ["CALM", "TOGETHER"])
def test_the_methods_of_ones_own_can_be_trained(name, tmp_path, monkeypatch):
    text = (DOCS / "guides" / "own-method.md").read_text()
    (tmp_path / "my_methods.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    monkeypatch.syspath_prepend(tmp_path)
    trainer = Trainer(Doors(), SMALL, f"my_methods:{name}")
    _, metrics = jax.eval_shape(trainer.update, jax.eval_shape(trainer.init, jax.random.key(0)))
    assert ("utility_size" in metrics) == (name == "CALM")


@pytest.mark.parametrize("method", ["alma", "alma-no-mask", "copa", "random"])
@pytest.mark.parametrize("name", ["fast", "paper"])
def test_the_task_of_ones_own_can_be_trained(name, method, monkeypatch):
    """It has no relations, no heuristics and no scripted policy: none of them is needed."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    named = {"__name__": "own"}
    text = (DOCS / "guides" / "own-task.md").read_text()
    exec(compile(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], "own", "exec"), named)
    options = preset(name, "starcraft")  # imagined groups, and targets in `fast`
    trainer = Trainer(named["Doors"](agents=4), options, method)
    _, metrics = jax.eval_shape(trainer.update, jax.eval_shape(trainer.init, jax.random.key(0)))
    assert "actor_loss" in metrics


def test_the_task_of_the_tutorial_keeps_the_contract(monkeypatch):
    """The notebook up to its training; the rest runs when the site is built."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    text = (DOCS / "tutorials" / "own-task.md").read_text()
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", text, re.DOTALL)
    notebook = {"__name__": "notebook"}
    for code in itertools.takewhile(lambda cell: "alma.train" not in cell, cells):
        exec(compile(code, "notebook", "exec"), notebook)
    task = notebook["Repairs"]()
    state = jax.device_get(task.reset(jax.random.key(0)))
    assert [marker.name for marker in task.scene(state).markers[4:]] == ["house"] * 4


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_can_be_read(page):
    assert [line for line in page.read_text().splitlines() if len(line) > 300] == []


def test_links_of_the_readme_lead_somewhere():
    """Sphinx checks those of the site."""
    links = re.findall(r'\]\(([^)]+)\)|src="([^"]+)"', (ROOT / "README.md").read_text())
    files = [link for pair in links for link in pair if link and "://" not in link]
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_site_is_whole(tmp_path):
    """All pages, links and the API reference, without executing notebooks: `make docs` does."""
    command = ["-m", "sphinx", "-W", "--keep-going", "--quiet", "-D", "nb_execution_mode=off", DOCS, tmp_path / "site"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()


def test_all_figures_are_told_of():
    text = (DOCS / "reproduce" / "figures.md").read_text()
    for name in FIGURES:
        assert f"\n| `{name}` |" in text, f"say what is trained for {name}"
        assert re.search(rf"\n\| .*`{name}`.* \| [a-z]", text), f"say what {name} shows"


TABLES = sorted((ROOT / "results").glob("*/table.md"))
WITH_INTERVAL = r"\d\.\d{3} \(\d\.\d{3} - \d\.\d{3}\)"


def solved_cells(table: Path) -> list[str]:
    """The column `solved` of all parts of a published table."""
    rows = [
        [cell.strip() for cell in line.split("|")] for line in table.read_text().splitlines() if line.startswith("|")
    ]
    column = rows[0].index("solved")
    return [row[column] for row in rows if re.match(r"\d", row[column])]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.parent.name)
def test_published_tables_are_in_the_results(table):
    results = (DOCS / "reproduce" / "results.md").read_text().replace("**", "")
    assert solved_cells(table), "nothing was found in the table"
    assert [cell for cell in solved_cells(table) if cell not in results] == []
    assert f"](tables.md#{table.parent.name})" in results
    assert f"../../results/{table.parent.name}/table.md" in (DOCS / "reproduce" / "tables.md").read_text()


def test_what_the_readme_shows_was_published():
    published = {cell for table in TABLES for cell in solved_cells(table)}
    _, readme = (ROOT / "README.md").read_text().replace("**", "").split("## Results")
    shown = re.findall(WITH_INTERVAL, readme)
    assert len(shown) >= 4
    assert [numbers for numbers in shown if numbers not in published] == []


def test_the_api_reference_has_every_public_name():
    documented = re.findall(r"^\.\. auto\w+:: alma\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(alma.__all__)
