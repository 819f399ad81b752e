"""Whatever `docs/reproduce/fidelity.md` names is there: code, tests and options."""

import ast
import re
from functools import cache, reduce
from pathlib import Path

import pytest

from alma.training.presets import FAST

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reproduce" / "fidelity.md"
LEVELS = ("actors", "allocator", "collection", "exploration", "report")


def lines():
    """(number, folder that files of its section are in, cells) of all lines; text has one cell."""
    folder = ""
    for number, line in enumerate(PAGE.read_text().splitlines(), start=1):
        if line.startswith("## "):
            folder = ""
        if found := re.match(r"Files of this section, code and tests, are in `([\w/]+/)`", line):
            folder = found[1]
        yield number, folder, re.split(r"(?<!\\)\|", line)


def named(separator):
    """(number of the line, file, name in it) of all that is named as a file, `separator` and a name. A file may stand
    alone; names that follow in the same cell belong to it."""
    name_alone = r"::(\S+)" if separator == "::" else r"(_?[A-Za-z]\w+)"
    for number, folder, cells in lines():
        for cell in cells:
            file = None
            for code in re.findall(r"`([^`]+)`", cell):
                if found := re.fullmatch(rf"([\w/]+\.py)(?:{separator}(\S+))?", code):
                    file = found[1] if found[1].startswith(folder) else folder + found[1]
                    yield number, file, found[2] or ""
                elif file and (found := re.fullmatch(name_alone, code)):
                    yield number, file, found[1]


@cache
def definitions(path):
    return ast.parse(path.read_text())


def defines(path, name):
    """Whether the file defines the name: `function`, `CONSTANT`, `Class.member`, or a member alone of some class."""
    classes = [node for node in definitions(path).body if isinstance(node, ast.ClassDef)]
    return name in names_in(definitions(path)) or any(
        name in names_in(node) or name in {f"{node.name}.{member}" for member in names_in(node)} for node in classes
    )


def names_in(node):
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child.name
        elif isinstance(child, ast.AnnAssign):
            yield ast.unparse(child.target)
        elif isinstance(child, ast.Assign):
            yield from (name.id for target in child.targets for name in ast.walk(target) if isinstance(name, ast.Name))


@pytest.mark.parametrize(("separator", "folder", "least"), [(": ", "alma", 200), ("::", "tests", 200)])
def test_code_and_tests_that_are_named_are_there(separator, folder, least):
    missing, count = [], 0
    for line, file, name in named(separator):
        path = ROOT / folder / file
        if path.name.startswith("test_") != (folder == "tests"):
            continue
        count += 1
        if not path.exists() or (name and not defines(path, name.replace("::", "."))):
            missing.append(f"line {line}: {file} {name}")
    assert not missing
    assert count > least


def test_options_that_are_named_are_there():
    options = {code for _, _, cells in lines() for code in re.findall(r"`([a-z]\w*(?:\.[a-z]\w*)+)`", " ".join(cells))}
    options = {option for option in options if option.startswith(tuple(f"{level}." for level in LEVELS))}
    assert len(options) > 10
    for option in options:
        reduce(getattr, option.split("."), FAST)
