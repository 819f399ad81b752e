"""Reading and writing small files: atomically, as JSON, JSON lines and TOML."""

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNFINISHED = ".unfinished"
"""The file name extension of a file that is being written."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Context manager for atomic writing: yields a temporary file, which replaces `path` once written and synced."""
    unfinished = path.with_suffix(UNFINISHED)
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


DATA_FILES = (".json", ".toml")
"""The file name extensions of files with settings that users write."""


def read_data(path: Path) -> dict[str, Any]:
    """Read an object from a JSON or TOML file. Raises a ValueError that names the file if it is invalid."""
    if path.suffix not in DATA_FILES:
        raise ValueError(f"{path} must be a {' or '.join(DATA_FILES)} file")
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    if path.suffix == ".json":
        return read_json(path)
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file. Raises a ValueError that names the file if it is invalid."""
    try:
        data = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} cannot be read: it is not a JSON object")
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(data, indent=2) + "\n")


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """All lines of a JSON Lines file; a last line that was only partly written is dropped."""
    lines = path.read_text().splitlines() if path.exists() else []
    whole = []
    for number, line in enumerate(lines, 1):
        try:
            whole.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number < len(lines):
                raise ValueError(f"{path} is damaged in line {number}: {error.msg}; delete that line") from None
    return whole
