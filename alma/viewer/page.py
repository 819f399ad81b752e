"""Builds one self-contained HTML file from the sources in `web/` and the data of `page_data.py`.

The sources are plain files without a build step: a page, a style sheet, and modules with imports of the form
`import { a, b } from "./other.js";`. A page opened from disk may not load modules, so they are concatenated, imported
ones first.
"""

import json
import re
from html import escape
from importlib.resources import files
from pathlib import Path

from alma.files import atomic_write
from alma.viewer.page_data import Json

PAGE = ".html"
SOURCES = files("alma.viewer") / "web"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(.*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def write_page(path: Path, data: Json) -> Path:
    """Write the page atomically; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as unfinished:
        unfinished.write_text(make_page(data), encoding="utf-8")
    return path


def make_page(data: Json) -> str:
    """The HTML of the page."""
    parts = {
        "title": escape(f"{data['task']}: " + " and ".join(side["label"] for side in data["sides"])),
        "style": _source("style.css"),
        "data": as_script_data(data),
        "script": bundle("main.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _source("index.html"))


def as_script_data(data: Json) -> str:
    """JSON that is safe inside a script element: nothing in it can close the element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def bundle(entry: str) -> str:
    """A module and everything it imports, concatenated into one script."""
    found: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        text = _source(name)
        for imported in _IMPORT.findall(text):
            visit(imported)
        found[name] = f"// {name}\n\n" + _EXPORT.sub("", _IMPORT.sub("", text)).strip()

    visit(entry)
    return "\n\n".join(found.values())


def _source(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")
