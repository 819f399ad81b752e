"""Reading and writing small files: atomically, as JSON, JSON lines and TOML."""

import errno
import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNFINISHED = ".unfinished"
"""The file name extension of a file that is being written."""

DEEPEST = 50
"""Most levels of tables and lists in a file."""

MOST_BYTES = 2**28
"""Largest text file that is read; what we write is thousands of times smaller."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Context manager for atomic writing: yields a temporary file, which replaces `path` once written and synced.

    If it cannot be written, such as on a full disk, `path` stays as it was, and the OSError names it.
    """
    unfinished = path.with_suffix(UNFINISHED)
    try:
        with naming(path):
            unfinished.unlink(missing_ok=True)  # in a folder from somebody else, it may be a link to any file
            yield unfinished
            with unfinished.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Context manager that adds the file to errors of writing it: the system names it only when it cannot be opened."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it names a file already
            raise
        advice = "; make room there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        reason = f"{error.strerror}; what it held before is kept{advice}"
        raise type(error)(f"{path} could not be written: {reason}") from None


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
        data = tomllib.loads(read_text(path))
        _check_depth(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {brief(error)}") from None
    return data


def read_text(path: Path) -> str:
    """Read a text file. Raises a ValueError that names the file if it is no text, or too large for what we read."""
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError(f"{path} cannot be read: it is no file, but a folder or a device")
    if size > MOST_BYTES:
        raise ValueError(f"{path} has {size:,} bytes, and at most {MOST_BYTES:,} are expected: it is damaged")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read: {brief(error)}") from None


def parse_json(text: str, path: Path) -> Any:
    """JSON data from a text. Raises a ValueError that names the file it is from if it is invalid."""
    try:
        data = json.loads(text)
        _check_depth(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {brief(error)}") from None
    return data


def _check_depth(data: Any) -> None:
    """Raise a ValueError if tables or lists are nested so deeply that going through them would exhaust the stack."""
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        level = [inner for inner in level if isinstance(inner, dict | list)]
    raise ValueError(f"tables or lists are nested more than {DEEPEST} deep")


def brief(error: object) -> str:
    """An error's message, cut if it is long: values from damaged files can be of any length."""
    text = str(error)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


LONGEST = 500
"""Most characters of a message about what is in a file."""


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file. Raises a ValueError that names the file if it is invalid."""
    data = parse_json(read_text(path), path)
    if not isinstance(data, dict):
        raise ValueError(f"{path} cannot be read: it is not a JSON object")
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(data, indent=2) + "\n")


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """All objects of a JSON Lines file; a last line that was only partly written is dropped."""
    lines = read_text(path).splitlines() if path.exists() else []
    whole = []
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise ValueError(f"{path} is damaged in line {number}: {reason}; delete that line") from None
            continue
        if not isinstance(found, dict):
            raise ValueError(f"{path} is damaged in line {number}: it is not a JSON object; delete that line")
        whole.append(found)
    return whole
