"""Who may import whom: the table in CONTRIBUTING.md, read from the code."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "alma"


def allowed():
    """From the table: what each package may import besides itself."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [line.split("|")[1:4] for line in text.splitlines() if line.startswith("| `")]
    names = [[part.strip(" `") for part in cell.split(",")] for row in rows for cell in row[:2]]
    return {
        room[0]: {name for name in others if name} - {"nothing"}
        for room, others in zip(names[::2], names[1::2], strict=True)
    }


def room_of(module):
    """`alma.play.team` belongs to `play`; a module right below the package belongs to itself."""
    return module.split(".")[1] if "." in module else "alma"


def imports():
    """(importing module, imported module) of everything in the package."""
    for file in PACKAGE.rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "alma":
                for name in node.names:
                    deeper = PACKAGE.parent / Path(*node.module.split("."), name.name)
                    is_module = deeper.is_dir() or deeper.with_suffix(".py").exists()
                    yield module, f"{node.module}.{name.name}" if is_module else node.module
            if isinstance(node, ast.Import):
                yield from ((module, name.name) for name in node.names if name.name.split(".")[0] == "alma")


def test_every_package_is_in_the_table():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms | {"api", "files", "pettingzoo"} == set(allowed())


def test_packages_import_what_they_may():
    table = allowed()
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in imports()
        if room_of(importer) in table and room_of(imported) not in {room_of(importer), *table[room_of(importer)]}
    ]
    assert not wrong


def test_what_is_allowed_is_used():
    """A row that allows more than there is would hide the next mistake."""
    used = defaultdict(set)
    for importer, imported in imports():
        used[room_of(importer)].add(room_of(imported))
    unused = {room: others - used[room] for room, others in allowed().items() if others - used[room]}
    assert not unused


def test_there_are_no_cycles_between_packages():
    table = allowed()

    def below(room, seen=()):
        if room in seen:
            pytest.fail(f"a cycle: {' -> '.join([*seen, room])}")
        for other in table[room]:
            below(other, (*seen, room))

    for room in table:
        below(room)


def test_learners_know_no_task():
    """Nor do tasks know learners: they meet in the contract."""
    learners = {"nn", "actors", "allocators", "learning", "training", "play"}
    for importer, imported in imports():
        assert not (room_of(importer) in learners and room_of(imported) == "tasks"), importer
        assert not (room_of(importer) == "tasks" and room_of(imported) in learners - {"nn"}), importer


def test_what_contributors_are_pointed_to_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    places = re.findall(r"`(\w+)` in `([\w/.]+)`", text)
    assert len(places) > 20
    for name, file in places:
        defined = rf"^\s*(class|def) {name}\b|^\s*{name}(: | = )"
        assert re.search(defined, (ROOT / file).read_text(), re.MULTILINE), f"{name} in {file}"
