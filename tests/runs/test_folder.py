"""Run folders: what is kept, what is in nobody's way, and which checkpoint is taken."""

import errno
import shutil
import zipfile
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL

from alma.files import UNFINISHED
from alma.runs import folder as folders
from alma.runs.checkpoint import MisfitError, load_tree
from alma.runs.config import RunConfig, learning_config
from alma.runs.folder import RunFolder
from alma.runs.policy import WEIGHTS, Policy

CONFIG = RunConfig("helpers.doors:Doors", options=SMALL)


@pytest.fixture(scope="module")
def like():
    return CONFIG.make_trainer().state_like()


@pytest.fixture(scope="module")
def state(like):
    """A train state of zeros, which takes no compiling."""

    def zeros(leaf):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jnp.zeros((*leaf.shape, 2), jnp.uint32))
        return np.zeros(leaf.shape, leaf.dtype)

    return jax.tree.map(zeros, like)


def save(folder, state, step, config=CONFIG):
    """Save the state as that of a step."""
    notes = {
        "config": learning_config(config),
        "seconds": 1.0,
        "evaluations": [],
        "metrics": {"totals": {}, "steps": 0},
    }
    params = CONFIG.make_trainer().play_params(state)
    return folder.save(replace(state, env_steps=np.int32(step)), Policy(config, params), notes)


@pytest.fixture
def folder(tmp_path, state):
    """A run with checkpoints of steps 512 and 1,024."""
    run = RunFolder(tmp_path / "run")
    run.create(CONFIG)
    for step in (512, 1_024):
        save(run, state, step)
    return run


def drop_a_part(path):
    """Leave out a part of a checkpoint."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts.pop(next(name for name in parts if "env_steps" in name))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_checkpoint_that_lacks_parts_is_told_and_the_one_before_offered(folder, like):
    newest = folder.saved()[0]
    drop_a_part(newest)
    message = (
        r"000000001024\.ckpt .* lacks 1 array, such as .*env_steps; the one of step 512 fits: .* move .*1024\.ckpt away"
    )
    with pytest.raises(MisfitError, match=message):
        folder.load(CONFIG, like, print)
    newest.rename(folder.path / "elsewhere.ckpt")
    state, _ = folder.load(CONFIG, like, print)
    assert state.env_steps == 512


def test_a_checkpoint_of_another_configuration_is_told_and_the_one_before_offered(folder, like, state):
    save(folder, state, 2_048, replace(CONFIG, seed=7))
    with pytest.raises(
        MisfitError, match=r"seed was 7 and is 0.*; the one of step 1,024 fits: to go on from there, move"
    ):
        folder.load(CONFIG, like, print)
    assert [path.stem for path in folder.saved()] == ["000000002048", "000000001024"], "nothing was moved"


def test_nothing_is_offered_where_nothing_fits(folder, like):
    for path in folder.saved():
        drop_a_part(path)
    with pytest.raises(MisfitError, match=r"such as .*env_steps$"):
        folder.load(CONFIG, like, print)


def test_a_checkpoint_under_another_name_is_damaged(folder, like):
    folder.saved()[0].rename(folder.checkpoints / "000000009999.ckpt")
    said = []
    state, _ = folder.load(CONFIG, like, said.append)
    assert state.env_steps == 512
    assert "9999.ckpt is damaged: it is the one of step 1,024; trying the one before" in said[0]


@pytest.mark.parametrize("part", ["write_tree", "weights"])
def test_a_full_disk_costs_nothing(folder, like, state, monkeypatch, part):
    """Whichever file it is that does not fit."""
    before = (folder.path / WEIGHTS).read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*((folders, "write_tree") if part == "write_tree" else (Policy, "save")), full)
    with pytest.raises(
        OSError, match=r"2048\.ckpt could not be written: No space left .*make room.*resume .*run --trust"
    ):
        save(folder, state, 2_048)
    assert (folder.path / WEIGHTS).read_bytes() == before
    assert [path.stem for path in folder.saved()] == ["000000001024", "000000000512"]
    assert load_tree(folder.saved()[0], like).env_steps == 1_024
    assert not list(folder.checkpoints.glob(f"*{UNFINISHED}"))


def test_a_first_save_that_fails_leaves_nothing(tmp_path, state, monkeypatch):
    """Weights without a checkpoint would look as if the checkpoint had been lost."""
    run = RunFolder(tmp_path / "run")
    run.create(CONFIG)

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("alma.files.os.replace", fail)
    with pytest.raises(OSError, match="could not be written: Input/output error"):
        save(run, state, 512)
    monkeypatch.undo()
    assert run.is_blank()
    save(run, state, 512)


def killed_in_its_first_save(folder):
    """As `kill -9` leaves it: the weights have their name, the checkpoint does not yet."""
    for path in folder.saved():
        path.with_suffix(UNFINISHED).write_bytes(path.read_bytes())
        path.unlink()


def test_a_run_killed_in_its_first_save_can_be_resumed(folder):
    killed_in_its_first_save(folder)
    folder.check_resumable()
    folder.delete_unfinished()
    assert not (folder.path / WEIGHTS).exists(), "they would look like those of a run that has lost its checkpoints"
    folder.check_resumable()


def test_a_run_that_came_to_nothing_gives_way(folder):
    killed_in_its_first_save(folder)
    assert folder.is_blank()
    other = replace(CONFIG, seed=5)
    folder.create(other)
    assert folder.read_config(trust=True) == other
    assert {path.name for path in folder.path.iterdir()} == {"config.json", "checkpoints"}
    (folder.path / "config.json").unlink()  # as where the disk was full
    folder.create(CONFIG)


@pytest.mark.parametrize("precious", ["run", "weights", "result.json", "notes.md", "checkpoints/000000000512.damaged"])
def test_what_holds_something_does_not_give_way(folder, precious):
    if precious != "run":
        shutil.rmtree(folder.checkpoints)
        folder.checkpoints.mkdir()
        (folder.path / WEIGHTS).unlink()
        (folder.path / (WEIGHTS if precious == "weights" else precious)).write_text("precious")
    assert not folder.is_blank()
    with pytest.raises(ValueError, match="exists already"):
        folder.create(CONFIG)


def test_what_is_no_run_does_not_give_way(tmp_path):
    """Somebody's model folder, which has checkpoints too."""
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.pt").write_text("precious")
    with pytest.raises(ValueError, match="is not empty, and no run folder"):
        RunFolder(tmp_path).create(CONFIG)
    assert (tmp_path / "checkpoints" / "model.pt").exists()
