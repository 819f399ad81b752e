import re
import tracemalloc
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alma.runs.checkpoint import CheckpointError, MisfitError, load_notes, load_tree, save_tree

TREE = {
    "key": jax.random.key(5),
    "weights": [jnp.arange(12, dtype=jnp.float32).reshape(3, 4), jnp.asarray([1, -2], jnp.int8)],
    "flag": jnp.asarray(True),
    "nothing": jnp.zeros((0, 3)),
}


def test_what_is_loaded_is_what_was_saved(tmp_path):
    path = tmp_path / "state.ckpt"
    save_tree(path, TREE)
    loaded = load_tree(path, jax.eval_shape(lambda: TREE))
    assert jax.tree.structure(loaded) == jax.tree.structure(TREE)
    for a, b in zip(jax.tree.leaves(loaded), jax.tree.leaves(TREE), strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(*(jax.random.key_data(x) if a.dtype == TREE["key"].dtype else x for x in (a, b)))
    assert [p.name for p in tmp_path.iterdir()] == ["state.ckpt"]


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_damage_does_no_harm_wherever_it_is(tmp_path, flip):
    """Every byte in turn: either nothing depends on it (times, say), or it is noticed as what it is."""
    path = tmp_path / "state.ckpt"
    tree = {"noise": jax.random.bits(jax.random.key(0), (20,))}
    save_tree(path, tree, {"steps": 3})
    whole = path.read_bytes()
    noticed = 0
    for place in range(len(whole)):
        path.write_bytes(bytes([*whole[:place], whole[place] ^ flip, *whole[place + 1 :]]))
        try:
            loaded, notes = load_tree(path, tree), load_notes(path)
        except CheckpointError as error:
            assert "state.ckpt is damaged" in str(error)  # noqa: PT017
            noticed += 1
        else:
            np.testing.assert_array_equal(loaded["noise"], tree["noise"])
            assert notes == {"steps": 3}
    assert noticed > 0.6 * len(whole)


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_tree(tmp_path / "nothing.ckpt", TREE)


def test_a_file_cut_short_is_damaged(tmp_path):
    path = tmp_path / "state.ckpt"
    save_tree(path, TREE)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="is damaged"):
        load_tree(path, TREE)


@pytest.mark.parametrize(
    ("other", "message"),
    [({"flag": TREE["flag"]}, "another configuration"), ({**TREE, "flag": jnp.zeros(2)}, "not float32")],
)
def test_what_does_not_fit_is_refused(tmp_path, other, message):
    save_tree(tmp_path / "state.ckpt", TREE)
    with pytest.raises(CheckpointError, match=message):
        load_tree(tmp_path / "state.ckpt", other)


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.ckpt"
    save_tree(path, {"a": jnp.ones(3)})

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(KeyboardInterrupt):
        save_tree(path, {"a": jnp.zeros(3)})
    monkeypatch.undo()
    assert load_tree(path, {"a": jnp.zeros(3)})["a"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(3,), (2**24,)])
def test_parts_that_would_fill_the_memory_are_not_unpacked(tmp_path, shape):
    """A gigabyte of zeros takes a megabyte in the file: its header tells before it is unpacked."""
    path = tmp_path / "state.ckpt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("['weights']", "w") as member:
            np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": shape})
            for _ in range(64):
                member.write(bytes(2**20))
        archive.writestr("notes.json", b" " * (2**26 + 1))
    wrong = "is not what float32(3,) takes" if shape == (3,) else "float32(16777216,), not float32(3,)"
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=re.escape(wrong)):
        load_tree(path, {"weights": jnp.zeros(3)})
    with pytest.raises(CheckpointError, match="its notes unpack to"):
        load_notes(path)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def spoiled(path, change):
    """A checkpoint whose parts were changed and written anew, with checksums that are right."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda parts: parts.pop("['flag']"), MisfitError, r"it lacks 1 array, such as \['flag'\]"),
        (lambda parts: parts.update(more=b"x"), CheckpointError, "is damaged"),
        (
            lambda parts: parts.update(more=parts["['flag']"]),
            MisfitError,
            "it has, and this configuration does not, 1 array, such as more",
        ),
        (lambda parts: parts.update({"notes.json": b"[1]"}), CheckpointError, "its notes are not a JSON object"),
        (lambda parts: parts.pop("notes.json"), CheckpointError, "is damaged"),
    ],
)
def test_parts_that_are_missing_or_strange_are_named(tmp_path, change, error, message):
    path = tmp_path / "state.ckpt"
    save_tree(path, TREE)
    spoiled(path, change)
    with pytest.raises(error, match=message):
        _ = load_tree(path, TREE), load_notes(path)
