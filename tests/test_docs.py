"""The code in the documentation runs."""

import re
from pathlib import Path

import pytest

from alma import registry

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
