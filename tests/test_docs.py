"""The code in the documentation runs."""

import re
from pathlib import Path

import jax
import pytest
from doors import SMALL, Doors

from alma import registry
from alma.trainer import Trainer

ROOT = Path(__file__).parent.parent
SNIPPETS = [
    pytest.param(code, id=f"{path.name}-{i}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippets_run(code, monkeypatch, capsys):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    if "import alma" not in code and "from alma" not in code:
        code = "import alma\n" + code
    exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize("name", ["CALM", "TOGETHER"])
def test_the_methods_of_ones_own_can_be_trained(name, tmp_path, monkeypatch):
    text = (ROOT / "docs" / "methods.md").read_text()
    (tmp_path / "my_methods.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    monkeypatch.syspath_prepend(tmp_path)
    trainer = Trainer(Doors(), SMALL, f"my_methods:{name}")
    _, figures = jax.eval_shape(trainer.update, jax.eval_shape(trainer.init, jax.random.key(0)))
    assert ("utility_size" in figures) == (name == "CALM")
