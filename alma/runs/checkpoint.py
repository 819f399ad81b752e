"""Checkpoints: pytrees of arrays in one file, compressed, with checksums, written atomically.

A checkpoint is a zip archive with one plain NumPy file for each leaf, named by its path in the tree. Every member
has a checksum, so that damage is detected. Nothing is ever unpickled.
"""

import errno
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from alma.files import atomic_write, brief
from alma.task.keys import integers_as_keys, keys_as_integers

Tree = TypeVar("Tree")


class CheckpointError(ValueError):
    """A checkpoint cannot be used: it is damaged, or was written by another configuration or version."""


class MisfitError(CheckpointError):
    """A checkpoint is intact, but was written by another configuration or version."""


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a pytree with their paths as names."""
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree)]


NOTES = "notes.json"


def save_tree(path: Path, tree: Any, notes: dict[str, Any] | None = None) -> None:
    """Write a pytree and notes (JSON data) to a checkpoint, atomically: readers see the old file or the new one."""
    with atomic_write(path) as unfinished:
        write_tree(unfinished, tree, notes)


def write_tree(path: Path, tree: Any, notes: dict[str, Any] | None = None) -> None:
    """Write a pytree and notes to a file."""
    # The lowest level of compression already shrinks replay several times, as fast as the disk can write.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, leaf in named_leaves(keys_as_integers(tree)):
            with archive.open(name, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(leaf), allow_pickle=False)
        archive.writestr(NOTES, json.dumps(notes or {}))


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Context manager that opens a checkpoint. Exceptions inside become a `CheckpointError`: the file is damaged.

    But not a failure to read it, such as of a file that is not there.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            yield archive
    except CheckpointError:
        raise
    except Exception as error:  # a flipped bit may be anywhere: in names, sizes, methods of compression
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which damaged places in the file lead to
            raise
        raise CheckpointError(f"{path} is damaged: {brief(error)}") from None


def load_tree(path: Path, like: Tree) -> Tree:
    """Read a pytree of the same structure, shapes and dtypes as `like` (arrays, or the result of `jax.eval_shape`).

    Nothing is unpacked before it is known to have the size that is expected.
    """
    expected = dict(named_leaves(jax.eval_shape(keys_as_integers, like)))
    with _archive(path) as archive:
        _check_members(archive, path)
        found = {name: _read_header(archive, name) for name in archive.namelist() if name != NOTES}
        if wrong := misfit(expected, found):
            if _is_plausible(archive, expected) and (changed := archive.testzip()):  # it may only look different
                raise CheckpointError(f"{path} is damaged: {changed} is not as it was written")
            raise MisfitError(f"{path} was written by another configuration or version of alma: {wrong}")
        arrays = [jnp.asarray(_read_array(archive, name)) for name in expected]
    return integers_as_keys(jax.tree.unflatten(jax.tree.structure(like), arrays), like)


def load_notes(path: Path) -> dict[str, Any]:
    """Read the notes that were saved with a pytree."""
    with _archive(path) as archive:
        _check_members(archive, path)
        size = archive.getinfo(NOTES).file_size
        if size > MOST_NOTES:
            raise CheckpointError(f"{path} is damaged: its notes unpack to {size:,} bytes, at most {MOST_NOTES:,}")
        notes = json.loads(archive.read(NOTES))
        if not isinstance(notes, dict):
            raise CheckpointError(f"{path} is damaged: its notes are not a JSON object")
        return notes


MOST_NOTES = 2**26
"""Bytes that notes may have."""


def misfit(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """A description of the first difference from the expected names, shapes and dtypes; empty if there is none."""
    for names, what in (
        (expected.keys() - found.keys(), "it lacks"),
        (found.keys() - expected.keys(), "it has, and this configuration does not,"),
    ):
        if names:
            return f"{what} {len(names)} array{'s' if len(names) > 1 else ''}, such as {brief(min(names))}"
    for name, leaf in expected.items():
        if (found[name].shape, found[name].dtype) != (leaf.shape, leaf.dtype):
            return f"{name} is {found[name].dtype}{found[name].shape}, not {leaf.dtype}{leaf.shape}"
    return ""


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise a CheckpointError if an archive has something inside that we do not write."""
    if len(set(archive.namelist())) != len(archive.namelist()):
        raise CheckpointError(f"{path} is damaged: it has two parts of the same name")
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CheckpointError(f"{path} is damaged: {member.filename} is compressed by an unknown method")


def _is_plausible(archive: zipfile.ZipFile, expected: Mapping[str, Any]) -> bool:
    """Whether an archive does not unpack to much more than is expected."""
    usual = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in expected.values())
    return sum(member.file_size for member in archive.infolist()) < 2 * usual + MOST_NOTES


def _read_header(archive: zipfile.ZipFile, name: str) -> jax.ShapeDtypeStruct:
    """Shape and dtype of an array in the archive. Raises a ValueError if the size of its data does not fit them."""
    with archive.open(name) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name} is in another format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        size = archive.getinfo(name).file_size
        if dtype.hasobject or member.tell() + math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"{name} unpacks to {size:,} bytes, which is not what {dtype}{shape} takes")
    return jax.ShapeDtypeStruct(shape, dtype)


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        member.read()  # to the end, so that the checksum is verified
    return array
