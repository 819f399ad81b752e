"""The files of a run folder: creating, locking, saving and loading."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alma.files import UNFINISHED, atomic_write, read_json, write_json
from alma.runs.checkpoint import CheckpointError, MisfitError, load_notes, load_tree, write_tree
from alma.runs.config import RunConfig, check_unedited, from_json, learning_config, to_json
from alma.runs.lock import FolderInUseError, Lock, locked
from alma.runs.notes import check_notes
from alma.runs.policy import WEIGHTS, Policy
from alma.runs.result import read_result
from alma.task.importing import Trust
from alma.training.trainer import TrainState

RUN_FILES = (
    f"*{UNFINISHED}",
    "metrics.jsonl",
    "tensorboard/events*",
    "checkpoints/*.ckpt",
    "checkpoints/*.damaged",
    f"checkpoints/*{UNFINISHED}",
    WEIGHTS,
    "result.json",
    "wandb.id",
    "train.log",
    "scores/*.json",
    f"scores/*{UNFINISHED}",
    "lock",
    "config.json",
)
"""Patterns of all files that a run writes into its folder. `clear` deletes in this order: without a configuration, the
folder is no longer recognised as a run."""

RUN_FOLDERS = ("tensorboard", "checkpoints", "scores")
"""Folders that a run makes in its folder."""

CONFIG_KEYS = {"task", "method", "preset", "seed", "options"}
"""Entries of `config.json` by which a run is told from other folders that have a file of that name."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run.

    Contains `config.json`, `metrics.jsonl`, `tensorboard/`, `checkpoints/` (the last two), `policy.safetensors` (the
    latest weights), `lock`, and, once the run is finished, `result.json`.
    """

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def log(self) -> Path:
        """The output of the process that a launcher started for the run."""
        return self.path / "train.log"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def check_free(self, force: bool = False) -> None:
        """Raise a ValueError if the folder is not empty or, with --force, if it is not a run folder.

        A run that ended before its first checkpoint may be overwritten.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file: choose another folder with --out")
        if not self.path.is_dir() or self.is_blank():
            return
        if not self.is_run():
            about = "is not a run folder, so --force will not delete it" if force else "is not empty, and no run folder"
            raise ValueError(f"{self.path} {about}: choose another --out")
        if not force:
            raise ValueError(
                f"{self.path} exists already: go on with: alma resume {self.path}, start over with --force, "
                "or choose another folder with --out"
            )

    def is_run(self) -> bool:
        """Whether the folder holds a run, finished or not."""
        try:
            return set(read_json(self.config)) >= CONFIG_KEYS
        except (OSError, ValueError):
            return False

    def is_blank(self) -> bool:
        """Whether the folder is empty, or holds only a run that ended before its first checkpoint."""
        names = {path.name for path in self.path.iterdir() if path.suffix != UNFINISHED}
        ours = names <= {*RUN_FILES, *RUN_FOLDERS} if self.is_run() else names <= {"lock", "checkpoints"}
        saved = [path for path in self.checkpoints.glob("*") if path.suffix != UNFINISHED]
        trained = self.result.exists() or (WEIGHTS in names and not self._was_saving())
        return ours and not saved and not trained

    def _was_saving(self) -> bool:
        """Whether a process was killed while it wrote a checkpoint: what it began is still there."""
        return any(self.checkpoints.glob(f"*{UNFINISHED}"))

    def clear(self) -> None:
        """Delete what a run wrote, and nothing else: files of other names stay, also in the folders that it made."""
        for pattern in RUN_FILES:
            for file in self.path.glob(pattern):
                file.unlink()
        for name in RUN_FOLDERS:
            with suppress(OSError):  # there is none, or something else is in it
                (self.path / name).rmdir()

    def create(self, config: RunConfig, force: bool = False) -> None:
        """Create the folder. One that is not empty is replaced only if `force`, and never while it is in use."""
        self.check_free(force)
        if self.path.is_dir():
            with self.locked():
                self.clear()
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_json(self.config, to_json(config))

    def read_config(self, trust: Trust = False) -> RunConfig:
        """The configuration of the run. Raises an error if it names code of somebody's own that is not trusted."""
        if not self.config.exists():
            raise ValueError(f"{self.path} is not a run folder: it has no config.json")
        return from_json(read_json(self.config), trust, self.config)

    def read_result(self) -> dict[str, Any]:
        """The contents of `result.json`, checked."""
        return read_result(self.result)

    @contextmanager
    def locked(self, say: Callable[[str], None] = lambda text: None) -> Iterator[Lock]:
        """Context manager that locks the folder against other processes; `say` is told whose lock was taken over."""
        with locked(self.lock, say) as lock:
            yield lock

    @property
    def how_to_continue(self) -> str:
        """How a finished run can be continued, for error messages."""
        if self.saved():
            return f"train for longer with: alma resume {self.path} --steps N"
        return "it has no checkpoint to go on from, as published runs have none; train it anew with --out"

    def check_unfinished(self) -> None:
        """Raise a ValueError that says what can be done instead if the run is finished."""
        if self.result.exists():
            raise ValueError(f"{self.path} is finished: {self.how_to_continue}, or see its result.json")

    def check_holds(self, config: RunConfig) -> None:
        """Raise an error if the folder is not that of this run: another process may have created its own run in it."""
        if learning_config(self.read_config(trust=True)) != learning_config(config):  # only compared, never imported
            raise FolderInUseError(f"{self.path} was taken by another run meanwhile: choose another folder with --out")

    def check_resumable(self) -> None:
        """Raise a ValueError if a run that has been trained has lost its checkpoints: it would begin anew."""
        trained = [name for name in (WEIGHTS, "result.json") if (self.path / name).exists()]
        if trained and not self.saved() and not self._was_saving():
            raise ValueError(
                f"{self.path} was trained ({', '.join(trained)} tells), but there is no checkpoint in "
                f"{self.checkpoints}: put the .ckpt files back, or start over with --force"
            )

    def saved(self) -> list[Path]:
        """Checkpoints, the newest first."""
        return sorted(
            (path for path in self.checkpoints.glob("*.ckpt") if path.stem.isdecimal() and path.is_file()), reverse=True
        )

    def save(self, state: TrainState, policy: Policy, notes: dict[str, Any]) -> Path:
        """Write the weights and a checkpoint; returns its path. The last two checkpoints are kept.

        Weights get their name before the checkpoint: if the process is killed in between, they are written again after
        resuming. What is left of the checkpoint then tells that it was being written.
        """
        path = self.checkpoints / f"{int(state.env_steps):012d}.ckpt"
        try:
            with atomic_write(path) as unfinished:
                write_tree(unfinished, state, notes)
                policy.save(self.path / WEIGHTS)
        except OSError as error:
            self.delete_unfinished()
            command = shlex.join(["alma", "resume", str(self.path), *(["--trust"] if policy.config.own_code else [])])
            raise type(error)(f"{error}; then go on with: {command}") from None
        for old in self.saved()[2:]:
            old.unlink()
        return path

    @property
    def devices(self) -> int | None:
        """The number of devices that the run was last trained on; None if there is no checkpoint that tells."""
        with suppress(CheckpointError, IndexError):
            return load_notes(self.saved()[0]).get("devices", 1)
        return None

    def saved_steps(self) -> set[int]:
        """The steps that there are checkpoints of."""
        return {int(path.stem) for path in self.saved()}

    def load(
        self, config: RunConfig, like: Any, warn: Callable[[str], None], step: int | None = None
    ) -> tuple[TrainState, dict[str, Any]] | None:
        """Load the newest intact checkpoint, or the one of a step: the train state and its notes. None if there are no
        checkpoints yet.

        Damaged ones are reported and, if an intact one is found, renamed, so that they are not among the two kept. One
        that does not fit is not passed over, since that would lose what it holds.
        """
        damaged: list[Path] = []
        for path in self.saved():
            if step is not None and int(path.stem) != step:
                continue
            try:
                loaded = self._load(path, config, like)
            except MisfitError as error:
                raise MisfitError(f"{error}{self._offer_before(path, config, like)}") from None
            except CheckpointError as error:
                warn(f"{error}; trying the one before")
                damaged.append(path)
                continue
            for other in damaged:
                other.rename(other.with_suffix(".damaged"))
            return loaded
        if damaged:
            raise ValueError(f"no checkpoint in {self.checkpoints} is whole: start over with --force")
        return None

    def _load(self, path: Path, config: RunConfig, like: Any) -> tuple[TrainState, dict[str, Any]]:
        """The train state and the notes of a checkpoint, which must be one of this run."""
        state, notes = load_tree(path, like), load_notes(path)
        check_notes(path, notes)
        if int(state.env_steps) != int(path.stem):
            raise CheckpointError(f"{path} is damaged: it is the one of step {int(state.env_steps):,}")
        try:
            check_unedited(config, self.config, notes["config"], path)
        except ValueError as error:
            raise MisfitError(str(error)) from None
        return state, notes

    def _offer_before(self, misfit: Path, config: RunConfig, like: Any) -> str:
        """What to do about a checkpoint that does not fit if one before it does; empty if none does."""
        for path in self.saved():
            if path < misfit:
                with suppress(CheckpointError):
                    self._load(path, config, like)
                    return f"; the one of step {int(path.stem):,} fits: to go on from there, move {misfit} away"
        return ""

    def delete_unfinished(self) -> None:
        """Delete partly written files of a process that was killed, and weights of a first save that it did not end."""
        if not self.saved():
            (self.path / WEIGHTS).unlink(missing_ok=True)
        for left in (*self.path.glob(f"*{UNFINISHED}"), *self.checkpoints.glob(f"*{UNFINISHED}")):
            left.unlink()
