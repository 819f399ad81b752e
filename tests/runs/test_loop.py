"""Runs on disk: cut anywhere, they go on as if nothing had happened, and nothing is lost."""

import json
import os
import shutil
import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.doors import SMALL

from alma.files import read_json_lines, write_json
from alma.runs.checkpoint import load_tree
from alma.runs.config import RunConfig, from_json, to_json
from alma.runs.folder import RunFolder
from alma.runs.loop import Run, TrainingFailed, extend, train
from alma.runs.policy import Policy, load
from alma.runs.signals import Interrupted
from alma.training.options import ReportOptions
from alma.training.program import OneDevice

CHUNK = 640
OPTIONS = replace(
    SMALL,
    steps=6 * CHUNK,
    report=ReportOptions(
        chunk=CHUNK,
        log_every=2 * CHUNK,
        evaluate_every=2 * CHUNK,
        episodes=16,
        final_episodes=32,
        checkpoint_minutes=1e-9,
    ),
)
CONFIG = RunConfig("helpers.doors:Doors", options=OPTIONS, preset="tiny")


class Watch:
    """A display that remembers, and that can pull the plug."""

    def __init__(self, stop_at=None, signal=signal.SIGINT):
        self.stop_at, self.signal = stop_at, signal
        self.said, self.steps = [], []

    def say(self, text):
        self.said.append(text)

    def show(self, progress):
        self.steps.append(progress.step)
        if progress.step == self.stop_at:
            os.kill(os.getpid(), self.signal)


def begin(path, config=CONFIG, **options):
    folder = RunFolder(path)
    folder.create(config)
    return Run(folder, config, Watch(**options))


def go_on(path):
    folder = RunFolder(path)
    return Run(folder, folder.read_config(trust=True), Watch())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted."""
    run = begin(tmp_path_factory.mktemp("runs") / "whole")
    run.train()
    return run


def final_state(run):
    like = jax.eval_shape(run.trainer.init, jax.random.key(0))
    return load_tree(run.folder.saved()[0], like)


def lines(run):
    timings = ("minutes", "steps_per_second")
    return [{k: v for k, v in line.items() if k not in timings} for line in read_json_lines(run.folder.metrics)]


def assert_same_end(run, whole):
    for a, b in zip(jax.tree.leaves(final_state(run)), jax.tree.leaves(final_state(whole)), strict=True):
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.array_equal(a, b)
    assert lines(run) == lines(whole)
    assert (
        json.loads(run.folder.result.read_text())["evaluation"]["success_rate"] == whole.evaluations[-1]["success_rate"]
    )


def test_a_run_leaves_what_it_should(whole):
    folder = whole.folder
    names = {path.name for path in folder.path.iterdir()}
    assert names == {
        "config.json", "lock", "metrics.jsonl", "tensorboard", "checkpoints", "policy.safetensors", "result.json",
    }  # fmt: skip
    assert [path.stem for path in folder.saved()] == ["000000003840", "000000003200"], "the last two"
    assert folder.read_config(trust=True) == CONFIG
    assert set(json.loads(folder.config.read_text())["versions"]) >= {"python", "jax", "alma-marl"}
    evaluated = [line for line in lines(whole) if "evaluation/success_rate" in line]
    assert [line["step"] for line in evaluated] == [1280, 2560, 3840]
    assert [line["evaluation/episodes"] for line in evaluated] == [16, 16, 32]
    logged = [line for line in lines(whole) if "actor_loss" in line]
    assert [line["step"] for line in logged] == [1280, 2560, 3840]
    assert all({"critic_loss", "proposal_loss", "explore_action", "episodes"} <= set(line) for line in logged)
    assert any(path.name.startswith("events.") for path in (folder.path / "tensorboard").iterdir())
    result = json.loads(folder.result.read_text())
    assert result["step"] == 3840
    assert result["evaluation"]["episodes"] == 32


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_goes_on_bit_for_bit(whole, tmp_path, number):
    run = begin(tmp_path / "cut", stop_at=3 * CHUNK, signal=number)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match=r"stopped at step 1,920; go on with: alma resume .*cut"):
        run.train()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert not run.folder.result.exists()
    resumed = go_on(run.folder.path)
    resumed.train()
    assert resumed.display.steps[0] == 4 * CHUNK
    assert_same_end(resumed, whole)


def test_a_killed_run_goes_on_from_its_last_checkpoint(whole, tmp_path):
    """As a kill leaves it: the log is ahead of the checkpoint, its last line is cut, a checkpoint is half written."""
    run = begin(tmp_path / "killed", stop_at=3 * CHUNK)
    with pytest.raises(Interrupted):
        run.train()
    run.folder.saved()[0].unlink()
    (run.folder.checkpoints / "000000002560.unfinished").write_bytes(b"half")
    with open(run.folder.metrics, "a") as file:
        file.write('{"step": 25')
    resumed = go_on(run.folder.path)
    resumed.train()
    assert resumed.display.steps[0] == 3 * CHUNK, "the one before was made after two chunks"
    assert not list(run.folder.path.rglob("*.unfinished"))
    assert_same_end(resumed, whole)


def test_a_run_killed_before_its_first_checkpoint_starts_over(whole, tmp_path):
    run = begin(tmp_path / "early")
    resumed = go_on(run.folder.path)
    resumed.train()
    assert_same_end(resumed, whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(whole, tmp_path):
    run = begin(tmp_path / "damaged", stop_at=3 * CHUNK)
    with pytest.raises(Interrupted):
        run.train()
    newest = run.folder.saved()[0]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    newest.write_bytes(data)
    resumed = go_on(run.folder.path)
    resumed.train()
    assert any(newest.name in text and "damaged" in text for text in resumed.display.said)
    assert newest.with_suffix(".damaged").read_bytes() == data, (
        "set aside, so that it does not count as one of two kept"
    )
    assert_same_end(resumed, whole)


def test_with_all_checkpoints_damaged_nothing_is_started_over_quietly(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "broken")
    folder = RunFolder(tmp_path / "broken")
    folder.result.unlink()
    for path in folder.saved():
        path.write_bytes(b"nothing")
    for _ in range(2):  # however often it is tried
        with pytest.raises(ValueError, match=r"no checkpoint .* is whole"):
            go_on(folder.path).train()
    assert folder.metrics.read_text() == whole.folder.metrics.read_text()


def test_a_finished_run_keeps_its_result_if_it_cannot_be_made_longer(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "broken")
    folder = RunFolder(tmp_path / "broken")
    for path in folder.saved():
        path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"no checkpoint .* is whole"):
        extend(folder, folder.read_config(trust=True), 7 * CHUNK, print)
    assert folder.result.exists()
    assert folder.read_config(trust=True) == CONFIG


def test_a_checkpoint_of_something_else_is_left_alone(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "other")
    folder = RunFolder(tmp_path / "other")
    folder.result.unlink()
    before = folder.saved()
    wider = replace(CONFIG, options=replace(CONFIG.options, actors=replace(CONFIG.options.actors, popart=True)))
    write_json(folder.config, to_json(wider))
    with pytest.raises(ValueError, match="written by another configuration or version of alma"):
        Run(folder, wider, Watch()).train()
    assert folder.saved() == before


def test_weights_are_never_older_than_the_checkpoint(tmp_path, monkeypatch):
    """They get their name while the checkpoint of the same step has none yet."""
    run, save, there = begin(tmp_path / "order"), Policy.save, []

    def saved(policy, path):
        there.append([checkpoint.stem for checkpoint in run.folder.saved()][:1])
        return save(policy, path)

    monkeypatch.setattr(Policy, "save", saved)
    run.train()
    assert there == [[], *([f"{step * CHUNK:012d}"] for step in range(1, 6))]


def test_a_finished_run_can_be_made_longer(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "longer")
    folder = RunFolder(tmp_path / "longer")
    with pytest.raises(ValueError, match="is finished: train for longer with: alma resume"):
        go_on(folder.path).train()
    with pytest.raises(ValueError, match="can only raise"):
        extend(folder, folder.read_config(trust=True), CHUNK, print)
    extend(folder, folder.read_config(trust=True), 7 * CHUNK, print)
    assert go_on(folder.path).train()["step"] == 7 * CHUNK


def test_a_published_run_is_left_as_it_is(whole, tmp_path):
    """Without weights and checkpoints it can be neither played nor gone on with: nothing of it may be lost."""
    left_out = shutil.ignore_patterns("*.ckpt", "*.safetensors")
    shutil.copytree(whole.folder.path, tmp_path / "published", ignore=left_out)
    folder = RunFolder(tmp_path / "published")
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    with pytest.raises(ValueError, match="is finished: it has no checkpoint to go on from"):
        extend(folder, folder.read_config(trust=True), 7 * CHUNK, print)
    with pytest.raises(ValueError, match="is finished: it has no checkpoint to go on from"):
        go_on(folder.path).train()
    with pytest.raises(ValueError, match="a finished run without its weights"):
        load(folder.path)
    assert before == {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}


def test_losses_that_are_not_finite_stop_the_run(tmp_path):
    options = replace(OPTIONS, actors=replace(OPTIONS.actors, learning_rate=1e30))
    run = begin(tmp_path / "nan", replace(CONFIG, options=options))
    with pytest.raises(TrainingFailed, match=r"actor_loss.* not finite any more at step .*000000000640\.ckpt"):
        run.train()
    good = final_state(run)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(good.actors.params))


@pytest.mark.parametrize("ruined", [np.nan, -np.inf])
@pytest.mark.parametrize("name", ["actors", "allocator"])
def test_ruined_parameters_are_neither_played_nor_saved(tmp_path, name, ruined):
    """By the last update before a checkpoint: no loss has been computed with them."""
    run = begin(tmp_path / "ruined", replace(CONFIG, options=replace(OPTIONS, steps=1)))
    state = run.trainer.init(jax.random.key(0))
    level = getattr(state, name)
    params = jax.tree.map(lambda leaf: leaf.at[0].set(ruined) if leaf.ndim else leaf, level.params)
    after = replace(state, env_steps=state.env_steps + 1, **{name: replace(level, params=params)})

    class Ruined(OneDevice):
        def compile(self, iterations):
            return lambda _: (after, {"actor_loss": jnp.float32(0)})

    with pytest.raises(TrainingFailed, match=f"a parameter of the {name} is not finite any more at step 1;"):
        train([run], Ruined(run.trainer), run.display)
    assert not run.folder.saved()
    assert not run.evaluations


def test_folders_are_not_overwritten(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG)
    (folder.path / "metrics.jsonl").write_text("precious")
    (folder.path / "checkpoints" / "000000000001.ckpt").write_text("old")
    with pytest.raises(ValueError, match="exists already: go on with: alma resume"):
        folder.create(CONFIG)
    assert (folder.path / "metrics.jsonl").read_text() == "precious"
    (folder.path / "notes.md").write_text("seen at step 500")
    (folder.checkpoints / "notes.md").write_text("of the first")
    folder.create(CONFIG, force=True)
    assert (folder.checkpoints / "notes.md").read_text() == "of the first", "not written by the run"
    assert not (folder.path / "metrics.jsonl").exists()
    assert not folder.saved()
    assert (folder.path / "notes.md").read_text() == "seen at step 500", "not written by the run"


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.locked(), pytest.raises(ValueError, match="is being trained by process"), folder.locked():
        pass
    with folder.locked():
        pass


def test_a_run_does_not_train_in_the_folder_of_another(tmp_path):
    """Two processes create a run in the same new folder, one right after the other."""
    first = begin(tmp_path / "run")
    other = replace(CONFIG, seed=7)
    first.folder.create(other)
    with pytest.raises(ValueError, match="was taken by another run"):
        first.train()
    assert first.folder.read_config(trust=True) == other
    assert not first.folder.saved()


def test_a_folder_in_use_is_neither_started_over_nor_made_longer(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "used")
    folder = RunFolder(tmp_path / "used")
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    with folder.locked():
        with pytest.raises(ValueError, match="is being trained by process"):
            folder.create(CONFIG, force=True)
        with pytest.raises(ValueError, match="is being trained by process"):
            extend(folder, folder.read_config(trust=True), 7 * CHUNK, print)
    assert before == {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}


def test_force_does_not_delete_what_is_no_run(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="is not a run folder, so --force will not delete it"):
        RunFolder(tmp_path).create(CONFIG, force=True)
    with pytest.raises(ValueError, match="is not empty, and no run folder: choose another --out"):
        RunFolder(tmp_path).create(CONFIG)
    with pytest.raises(ValueError, match="is a file"):
        RunFolder(tmp_path / "thesis.tex").create(CONFIG, force=True)
    assert (tmp_path / "thesis.tex").exists()
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"architectures": ["Transformer"]}')
    (model / "policy.safetensors").write_text("weights of something else")
    with pytest.raises(ValueError, match="is not a run folder, so --force will not delete it"):
        RunFolder(model).create(CONFIG, force=True)
    assert (model / "policy.safetensors").exists()


@pytest.mark.parametrize("lost", ["files", "folder"])
def test_a_run_that_lost_its_checkpoints_does_not_begin_anew(whole, tmp_path, lost):
    shutil.copytree(whole.folder.path, tmp_path / "robbed")
    folder = RunFolder(tmp_path / "robbed")
    folder.result.unlink()
    if lost == "folder":
        shutil.rmtree(folder.checkpoints)
    else:
        for file in folder.saved():
            file.unlink()
    before = folder.metrics.read_bytes()
    with pytest.raises(ValueError, match=r"there is no checkpoint in .*checkpoints: put the \.ckpt files back"):
        go_on(folder.path).train()
    assert folder.metrics.read_bytes() == before


def test_a_run_that_never_made_a_checkpoint_can_be_resumed(whole, tmp_path):
    run = begin(tmp_path / "unlucky")
    shutil.rmtree(run.folder.checkpoints)
    resumed = go_on(run.folder.path)
    resumed.train()
    assert_same_end(resumed, whole)


def test_an_edited_configuration_is_noticed(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "edited")
    folder = RunFolder(tmp_path / "edited")
    folder.result.unlink()
    data = json.loads(folder.config.read_text())
    data["options"]["actors"]["gamma"] = 0.5
    folder.config.write_text(json.dumps(data))
    before = folder.metrics.read_bytes()
    with pytest.raises(ValueError, match=r"config.json was edited .*: options.actors.gamma was .* and is 0.5"):
        go_on(folder.path).train()
    assert folder.metrics.read_bytes() == before


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(ValueError, match="is not a run folder"):
        RunFolder(tmp_path).read_config(trust=True)
    for content in (b"{", b"[]", b'{"task": 5}', b'{"task": "doors", "seed": "zero"}', b"\xff\xfe"):
        (tmp_path / "config.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"config\.json cannot be read"):
            RunFolder(tmp_path).read_config(trust=True)


def test_configurations_survive_json():
    config = RunConfig("save-the-city", {"agents": (2, 3)}, "heuristic", "paper", 7, OPTIONS)
    loaded = from_json(json.loads(json.dumps(to_json(config))))
    assert loaded.options == config.options
    assert loaded.make_task() == config.make_task()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": "slow"}, "unknown preset"),
        ({"seed": -1}, "seed must lie between"),
        ({"colour": "red"}, "there is no 'colour'"),
    ],
)
def test_configurations_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        from_json({**to_json(CONFIG), **change}, trust=True)


# ---- what was learned


def test_what_was_saved_is_what_plays(whole, tmp_path):
    policy = load(whole.folder.path, trust=True)
    file = policy.save(tmp_path / "weights.safetensors")
    again = load(file, trust=True)
    assert again.config == policy.config == CONFIG
    for a, b in zip(jax.tree.leaves(again.params), jax.tree.leaves(policy.params), strict=True):
        assert np.array_equal(a, b)
    learned = whole.trainer.play_params(final_state(whole))
    for a, b in zip(jax.tree.leaves(policy.params), jax.tree.leaves(learned), strict=True):
        assert np.array_equal(a, b)


def test_a_policy_plays_an_episode(whole):
    policy = load(whole.folder.path, trust=True)
    task = policy.task
    state = task.reset(jax.random.key(0))
    view = task.view(state)
    allocation = policy.allocate(view, jax.random.key(1))
    assert view.active[allocation].all()
    actions = policy.act(view, allocation)
    values = policy.values(view, allocation)
    assert values.shape == (2, 4)
    doors = np.asarray(actions) // 2
    assert (doors == np.asarray(allocation)).all(), "actions aimed at other subtasks are not available here"
    best = np.where(np.arange(4) // 2 == np.asarray(allocation)[:, None], values, -np.inf).argmax(axis=1)
    assert (best == np.asarray(actions)).all()
    every = np.array([[a, b] for a in range(2) for b in range(2)])
    assert policy.allocation_values(view, every).shape == (4,)


@pytest.mark.parametrize("what", ["missing", "empty folder", "garbage", "wrong ending", "other tensors"])
def test_what_cannot_be_loaded_or_saved(whole, tmp_path, what):
    if what == "missing":
        with pytest.raises(ValueError, match="no such file"):
            load(tmp_path / "x.safetensors")
    elif what == "empty folder":
        with pytest.raises(ValueError, match="not a run folder"):
            load(tmp_path)
    elif what == "garbage":
        (tmp_path / "x.safetensors").write_bytes(b"garbage")
        with pytest.raises(ValueError, match="cannot load"):
            load(tmp_path / "x.safetensors")
    elif what == "wrong ending":
        with pytest.raises(ValueError, match=r"saved as \.safetensors"):
            load(whole.folder.path, trust=True).save(tmp_path / "x.pkl")
    else:
        from safetensors.flax import save_file

        save_file({"a": jax.numpy.zeros(2)}, str(tmp_path / "x.safetensors"))
        with pytest.raises(ValueError, match="not written by alma"):
            load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_not_played(whole, tmp_path, value):
    policy = load(whole.folder.path, trust=True)
    ruined = jax.tree.map(lambda leaf: leaf.at[(0,) * leaf.ndim].set(value), policy.params)
    file = Policy(policy.config, ruined).save(tmp_path / "ruined.safetensors")
    with pytest.raises(ValueError, match=r"cannot be played: \d+ of its arrays hold NaN or infinity"):
        load(file, trust=True)


def test_damaged_metrics_are_told_before_compiling(whole, tmp_path):
    shutil.copytree(whole.folder.path, tmp_path / "junk")
    folder = RunFolder(tmp_path / "junk")
    folder.result.unlink()
    lines = folder.metrics.read_text().splitlines()
    folder.metrics.write_text("\n".join([lines[0], "junk", *lines[1:], ""]))
    before = folder.metrics.read_bytes()
    display = Watch()
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged in line 2: .*; delete that line"):
        Run(folder, folder.read_config(trust=True), display).train()
    assert display.said == []
    assert folder.metrics.read_bytes() == before
