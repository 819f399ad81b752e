"""Saving a tree of arrays so that nothing is lost: compressed, checked, and never half written.

A checkpoint is a zip archive with one plain NumPy file for each leaf, named by its path in the tree. Every member
carries a checksum, so damage is noticed. Nothing is ever unpickled.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar("Tree")


class CheckpointError(ValueError):
    """A checkpoint cannot be used: it is damaged, or belongs to something else."""


class MisfitError(CheckpointError):
    """A checkpoint is whole, but belongs to something else."""


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The arrays of a tree with their paths in it."""
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree)]


NOTES = "notes.json"

UNFINISHED = ".unfinished"

ANOTHER = "another configuration or version of alma"


@contextmanager
def written_at_once(path: Path) -> Iterator[Path]:
    """A place to write to within; only when that went well, and is on the disk, does it take the name of the file."""
    unfinished = path.with_suffix(UNFINISHED)
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def save_tree(path: Path, tree: Any, notes: dict[str, Any] | None = None) -> None:
    """Write a tree, and notes beside it, at once: who reads the file sees the old one or the new one, whole."""
    # The lowest level of compression: replay of states shrinks several times, at the speed of the disk.
    with (
        written_at_once(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for name, leaf in named_leaves(tree):
            array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
            with archive.open(name, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.writestr(NOTES, json.dumps(notes or {}))


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """A checkpoint to read from within. What goes wrong there is damage, since the file has been read by then: files
    that cannot be read are no worse for it."""
    content = io.BytesIO(path.read_bytes())
    try:
        with zipfile.ZipFile(content) as archive:
            yield archive
    except CheckpointError:
        raise
    except Exception as error:  # a bit may turn over anywhere: in names, sizes, methods of compression
        raise CheckpointError(f"{path} is damaged: {error}") from None


def load_tree(path: Path, like: Tree) -> Tree:
    """Read a tree of the same structure, shapes and dtypes as `like` (arrays, or what `jax.eval_shape` gives)."""
    with _archive(path) as archive:
        expected = named_leaves(like)
        if {name for name, _ in expected} != set(archive.namelist()) - {NOTES}:
            if changed := archive.testzip():  # a name may be another one because of damage
                raise CheckpointError(f"{path} is damaged: {changed} is not as it was written")
            raise MisfitError(f"{path} was written by {ANOTHER}: its contents do not fit")
        leaves = [_read_leaf(archive, path, name, leaf) for name, leaf in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def load_notes(path: Path) -> dict[str, Any]:
    """Read the notes that were saved beside a tree."""
    with _archive(path) as archive:
        _check_size(archive, path, NOTES, MOST_NOTES)
        return json.loads(archive.read(NOTES))


HEADER = 4096
"""Bytes that an array's file may have more than the array itself."""

MOST_NOTES = 2**26
"""Bytes that notes may have."""


def _check_size(archive: zipfile.ZipFile, path: Path, name: str, most: int) -> None:
    """Raise a CheckpointError before a part is unpacked that is larger than it can be."""
    size = archive.getinfo(name).file_size
    if size > most:
        raise CheckpointError(f"{path} is damaged: {name} unpacks to {size:,} bytes, and at most {most:,} are expected")


def _bytes_of(like: Any) -> int:
    """Bytes of an array; of random keys, more than any implementation has."""
    return math.prod(like.shape) * (64 if _is_key(like) else like.dtype.itemsize)


def _read_leaf(archive: zipfile.ZipFile, path: Path, name: str, like: Any) -> Any:
    # A part with other shapes is told apart below; but not one that would fill the memory.
    _check_size(archive, path, name, max(2 * _bytes_of(like), 2**20) + HEADER)
    with archive.open(name) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        member.read()  # to the end, so that the checksum is compared
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(array))
    if array.shape != like.shape or array.dtype != like.dtype:
        found = f"{array.dtype}{array.shape}"
        raise MisfitError(f"{path} was written by {ANOTHER}: {name} is {found}, not {like.dtype}{like.shape}")
    return jnp.asarray(array)
