"""Fuzzing: mutated files of every kind that is read. Each is refused with a message, or read as what it says."""

import hashlib
import io
import json
import random
import resource
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alma.files import read_json
from alma.reproduce.scores import check_played, read_played
from alma.runs.config import to_json
from alma.runs.folder import RunFolder
from alma.runs.metrics import read_metrics
from alma.runs.policy import WEIGHTS, Policy, load
from alma.runs.result import read_result
from alma.training.preset_file import find_preset, read_preset
from alma.tuning.spaces import read_space
from alma.tuning.sweep import read_sweep
from torture import mutations as m
from torture.mutations import Mutation

MOST_MEGABYTES = 300
"""Memory that reading a mutated file may take more than reading the whole one."""

MOST_SECONDS = 20.0

LONGEST = 1_000
"""Characters of a message."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: how it is read, and what mutations may do."""

    name: str
    file: Path
    read: Callable[[], Any]
    """Reads the file as the package does; what it gives is compared with what the whole file gives."""
    damage: Sequence[Mutation]
    """After these it must be refused, or read as the whole file."""
    rewriting: Sequence[Mutation] = ()
    """After these, which leave no trace, it may also be read as what it says now."""
    says: Callable[[Any], bool] = lambda value: True
    """Whether the file says what was read from it, by another way of reading."""


@dataclass
class Outcome:
    """What came of the mutated files of a kind."""

    name: str
    files: int = 0
    refused: int = 0
    unchanged: int = 0
    as_written: int = 0
    megabytes: float = 0.0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[str, ...]:
        counts = (self.files, self.refused, self.unchanged, self.as_written, len(self.failures))
        return (self.name, *map(str, counts), f"{self.megabytes:.0f} MB", f"{self.slowest:.2f} s")


HEAD = ("file", "mutated", "refused", "read as before", "read as written", "failures", "more memory", "slowest")


def fuzz(kind: Kind, count: int, seed: int) -> Outcome:
    """Mutate a file so many times, and read it each time; the file is left as it was."""
    whole, rng, outcome = kind.file.read_bytes(), random.Random(f"{kind.name} {seed}"), Outcome(kind.name)
    before, usual = _peak_megabytes(), kind.read()
    try:
        for _ in range(count):
            mutate = rng.choice((*kind.damage, *kind.rewriting))
            _one(kind, mutate, mutate(whole, rng), whole, usual, outcome)
    finally:
        kind.file.write_bytes(whole)
    outcome.megabytes = _peak_megabytes() - before
    if outcome.megabytes > MOST_MEGABYTES:
        outcome.failures.append(f"it took {outcome.megabytes:.0f} MB")
    if "torture.trap" in sys.modules:
        outcome.failures.append("code that a file names was imported")
    return outcome


def _one(kind: Kind, mutate: Mutation, content: bytes, whole: bytes, usual: Any, outcome: Outcome) -> None:
    """Read one mutated file and judge what happens."""
    outcome.files += 1
    kind.file.write_bytes(content)
    began = time.monotonic()
    wrong = ""
    try:
        value = kind.read()
    except (ValueError, OSError) as error:
        outcome.refused += 1
        text = str(error)
        if kind.file.name not in text or len(text) > LONGEST or type(error) is UnicodeDecodeError:
            wrong = f"its message is no good: {text[:300]}"
    except BaseException as error:
        wrong = f"{type(error).__name__}: {str(error)[:300]}"
    else:
        if value == usual:
            outcome.unchanged += 1
        elif mutate in kind.rewriting and kind.says(value):
            outcome.as_written += 1
        else:
            wrong = "it was read as something else"
    seconds = time.monotonic() - began
    outcome.slowest = max(outcome.slowest, seconds)
    if seconds > MOST_SECONDS:
        wrong = f"it took {seconds:.0f} s"
    if wrong:
        kept = kind.file.with_name(f"failure-{len(outcome.failures)}-{kind.file.name}")
        if len(outcome.failures) < 20:
            kept.write_bytes(content)
        outcome.failures.append(f"{getattr(mutate, '__name__', 'mutation')}: {wrong} ({kept})")


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---- the kinds


def kinds(run: RunFolder, folder: Path) -> list[Kind]:
    """All kinds of files that are read, in copies of a finished run and in a folder."""
    return [
        checkpoint_kind(run), weights_kind(run), config_kind(run), metrics_kind(run), result_kind(run),
        scores_kind(folder), *preset_kinds(folder), *sweep_kinds(folder), *space_kinds(folder),
    ]  # fmt: skip


def checkpoint_kind(run: RunFolder) -> Kind:
    config, file = run.read_config(), run.saved()[0]
    for other in run.saved()[1:]:
        other.unlink()
    like = config.make_trainer().state_like()

    def read() -> Any:
        said: list[str] = []
        try:
            found = run.load(config, like, said.append)
        except ValueError as error:
            raise ValueError("; ".join([*said, str(error)])) from None
        assert found is not None
        state, notes = found
        return _hash(named_bytes(state)), notes

    def says(value: Any) -> bool:
        with zipfile.ZipFile(file) as archive:
            notes = json.loads(archive.read("notes.json"))
            arrays = {name: _npy(archive.read(name)) for name in archive.namelist() if name != "notes.json"}
        return value == (_hash(arrays), notes)

    rewriting = (*m.CHECKPOINT[:6], *m.CHECKPOINT[1:4])
    return Kind("checkpoint", file, read, (*m.BYTES, *m.CHECKPOINT[6:]), rewriting, says)


def named_bytes(tree: Any) -> dict[str, bytes]:
    """The arrays of a tree by their names."""
    import jax

    from alma.runs.checkpoint import named_leaves

    def plain(leaf: Any) -> Any:
        return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf

    return {name: np.asarray(plain(leaf)).tobytes() for name, leaf in named_leaves(tree)}


def _npy(content: bytes) -> bytes:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False).tobytes()


def _hash(arrays: dict[str, bytes]) -> str:
    found = hashlib.sha256()
    for name, content in sorted(arrays.items()):
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()


def weights_kind(run: RunFolder) -> Kind:
    file = run.path / WEIGHTS

    def read() -> Any:
        policy: Policy = load(file)
        return _hash(named_bytes(policy.params)), _plain(to_json(policy.config))

    def says(value: Any) -> bool:
        from safetensors.numpy import load_file

        from alma.runs.weights import read_weights

        arrays = {name: leaf.tobytes() for name, leaf in load_file(file).items()}
        return value[0] == _hash(arrays) and _within(read_weights(file)[0], value[1])

    return Kind("weights", file, read, (*m.BYTES, *m.WEIGHTS), (m.resigned, m.resigned, m.resigned), says)


def config_kind(run: RunFolder) -> Kind:
    def read() -> Any:
        config = run.read_config()
        try:
            config.make_team()
        except ValueError as error:  # it is read: what it asks for cannot be
            raise ValueError(f"{run.config}: {error}") from None
        return _plain(to_json(config))

    return Kind(
        "config.json", run.config, read, (), (*m.BYTES, *m.JSON), lambda value: _within(read_json(run.config), value)
    )


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Data as JSON gives them back, without versions."""
    return {name: value for name, value in json.loads(json.dumps(data)).items() if name != "versions"}


def _within(written: Any, read: Any) -> bool:
    """Whether everything that a file says was read like that; entries that it does not have have defaults."""
    if isinstance(written, dict) and isinstance(read, dict):
        return all(name in read and _within(value, read[name]) for name, value in written.items() if name != "versions")
    return written == read


def metrics_kind(run: RunFolder) -> Kind:
    def says(value: Any) -> bool:
        lines = run.metrics.read_text().splitlines()
        return value == [json.loads(line) for line in lines][: len(value)] and len(value) >= len(lines) - 1

    def says_or_cut(value: Any) -> bool:
        try:
            return says(value)
        except (ValueError, RecursionError):  # its last line is cut, which the package leaves out
            return value == [json.loads(line) for line in run.metrics.read_text().splitlines()[:-1]]

    return Kind(
        "metrics.jsonl", run.metrics, lambda: read_metrics(run.metrics), (), (*m.BYTES, *m.JSON_LINES), says_or_cut
    )


def result_kind(run: RunFolder) -> Kind:
    return Kind(
        "result.json", run.result, lambda: read_result(run.result), (), (*m.BYTES, *m.JSON),
        lambda value: value == json.loads(run.result.read_text()),
    )  # fmt: skip


def scores_kind(folder: Path) -> Kind:
    file = folder / "as-trained.json"
    file.write_text(json.dumps(made_up_scores()))
    check_played(read_json(file))
    return Kind(
        "published scores", file, lambda: read_played(file), (), (*m.BYTES, *m.JSON),
        lambda value: value == json.loads(file.read_text()),
    )  # fmt: skip


def made_up_scores() -> dict[str, Any]:
    """What is stored of 40 episodes."""
    from alma.play.summary import Results

    rng = np.random.default_rng(0)
    solved, sizes = rng.random(40) < 0.6, rng.integers(2, 5, 40)
    zeros = np.zeros(40)
    results = Results(solved, rng.normal(size=40), np.full(40, 30), sizes, zeros, zeros, {"deaths": zeros})
    marks = "".join("1" if each else "0" for each in solved)
    return {"played_by": {"weights": ["0a1b"], "episodes": 40, "seed": 7}, **results.summary(), "successes": marks}


PRESET = {"about": "for fuzzing", "preset": "tiny", "options": {"steps": 2048, "actors.gamma": 0.9, "play": "live"}}


def preset_kinds(folder: Path) -> list[Kind]:
    as_json, as_toml = folder / "preset.json", folder / "preset.toml"
    as_json.write_text(json.dumps(PRESET, indent=2))
    as_toml.write_text(
        'about = "for fuzzing"\npreset = "tiny"\n[options]\nsteps = 2048\nplay = "live"\n'
        "[options.actors]\ngamma = 0.9\n"
    )

    def kind(file: Path, mutations: Sequence[Mutation]) -> Kind:
        def read() -> Any:
            find_preset(str(file), "save-the-city")
            return read_preset(str(file))

        def says(value: Any) -> bool:
            data = _data(file)
            return data.get("preset", "fast") == value.preset and _flat(data.get("options", {})) == dict(value.options)

        return Kind(f"preset ({file.suffix[1:]})", file, read, (), (*m.BYTES, *mutations), says)

    return [kind(as_json, m.JSON), kind(as_toml, m.TOML)]


def _data(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.suffix == ".json" else tomllib.loads(file.read_text())


def _flat(data: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in data.items():
        found |= _flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return found


def sweep_kinds(folder: Path) -> list[Kind]:
    as_json, as_toml = folder / "sweep.json", folder / "sweep.toml"
    data = {"task": "save-the-city", "methods": ["alma", "flat"], "seeds": [0, 1], "preset": "tiny", "steps": 2048}
    grid = {"actors.n_step": [1, 3], "set.agents": [2, 3]}
    as_json.write_text(json.dumps({**data, "grid": grid, "options": {"actors.gamma": 0.9}}, indent=2))
    as_toml.write_text(
        'task = "save-the-city"\nmethods = ["alma", "flat"]\nseeds = [0, 1]\npreset = "tiny"\nsteps = 2048\n'
        "[grid]\nactors.n_step = [1, 3]\nset.agents = [2, 3]\n[options]\nactors.gamma = 0.9\n"
    )

    def kind(file: Path, mutations: Sequence[Mutation]) -> Kind:
        def read() -> Any:
            sweep = read_sweep(file)
            try:
                runs = sweep.runs(folder / "out")
            except ValueError as error:  # it is read: what it asks for cannot be
                raise ValueError(f"{file}: {error}") from None
            return sweep, [run.job.name for run in runs]

        def says(value: Any) -> bool:
            said = _data(file)
            return all(getattr(value[0], name) == said[name] for name in ("task", "preset", "steps") if name in said)

        return Kind(f"sweep ({file.suffix[1:]})", file, read, (), (*m.BYTES, *mutations), says)

    return [kind(as_json, m.JSON), kind(as_toml, m.TOML)]


def space_kinds(folder: Path) -> list[Kind]:
    file = folder / "space.toml"
    file.write_text(
        "[actors]\ngamma = { low = 0.9, high = 0.99 }\nn_step = { low = 1, high = 5 }\n"
        "learning_rate = { low = 1e-4, high = 1e-2, log = true }\nbatch = { choices = [16, 32] }\n"
    )
    return [Kind("search space", file, lambda: read_space(file), (), (*m.BYTES, *m.TOML))]
