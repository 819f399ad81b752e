"""Checkpoints: pytrees of arrays in one file, compressed, with checksums, written atomically.

A checkpoint is a zip archive with one plain NumPy file for each leaf, named by its path in the tree. Every member
has a checksum, so that damage is detected. Nothing is ever unpickled.
"""

import io
import json
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from alma.files import atomic_write

Tree = TypeVar("Tree")


class CheckpointError(ValueError):
    """A checkpoint cannot be used: it is damaged, or was written by another configuration or version."""


class MisfitError(CheckpointError):
    """A checkpoint is intact, but was written by another configuration or version."""


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a pytree with their paths as names."""
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree)]


NOTES = "notes.json"

ANOTHER = "another configuration or version of alma"


def save_tree(path: Path, tree: Any, notes: dict[str, Any] | None = None) -> None:
    """Write a pytree and notes (JSON data) to a checkpoint, atomically: readers see the old file or the new one."""
    # The lowest level of compression already shrinks replay several times, as fast as the disk can write.
    with (
        atomic_write(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for name, leaf in named_leaves(tree):
            array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
            with archive.open(name, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.writestr(NOTES, json.dumps(notes or {}))


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Context manager that opens a checkpoint. Exceptions inside become a `CheckpointError`: the file is damaged.

    The file itself is read before, so that a failure to read it is not taken for damage.
    """
    content = io.BytesIO(path.read_bytes())
    try:
        with zipfile.ZipFile(content) as archive:
            yield archive
    except CheckpointError:
        raise
    except Exception as error:  # a flipped bit may be anywhere: in names, sizes, methods of compression
        raise CheckpointError(f"{path} is damaged: {error}") from None


def load_tree(path: Path, like: Tree) -> Tree:
    """Read a pytree of the same structure, shapes and dtypes as `like` (arrays, or the result of `jax.eval_shape`)."""
    with _archive(path) as archive:
        expected = named_leaves(like)
        if {name for name, _ in expected} != set(archive.namelist()) - {NOTES}:
            if changed := archive.testzip():  # names may differ because of damage
                raise CheckpointError(f"{path} is damaged: {changed} is not as it was written")
            raise MisfitError(f"{path} was written by {ANOTHER}: its contents do not fit")
        leaves = [_read_leaf(archive, path, name, leaf) for name, leaf in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def load_notes(path: Path) -> dict[str, Any]:
    """Read the notes that were saved with a pytree."""
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
        member.read()  # to the end, so that the checksum is verified
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(array))
    if array.shape != like.shape or array.dtype != like.dtype:
        found = f"{array.dtype}{array.shape}"
        raise MisfitError(f"{path} was written by {ANOTHER}: {name} is {found}, not {like.dtype}{like.shape}")
    return jnp.asarray(array)
