"""The Python API: train, resume, evaluate and watch, as on the command line."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from alma.play.episodes import EVALUATION_SEED, play_episodes
from alma.play.summary import Results
from alma.runs import runtime
from alma.runs.config import RunConfig, check_seed
from alma.runs.devices import make_program
from alma.runs.folder import RunFolder
from alma.runs.loop import Run, extend
from alma.runs.loop import train as train_runs
from alma.runs.memory import check_room
from alma.runs.policy import Policy, load, name_of
from alma.runs.progress import Progress
from alma.runs.sinks import require_wandb
from alma.training.options import with_overrides
from alma.training.preset_file import find_preset
from alma.training.presets import with_actors
from alma.viewer.page import PAGE, write_page
from alma.viewer.page_data import Side, page_data, team_labels
from alma.viewer.record import record

OnProgress = Callable[[Progress], None]
"""Called after every chunk of training (`report.chunk` environment steps)."""

logger = logging.getLogger("alma")


@dataclass(frozen=True)
class CallbackDisplay:
    """A display that passes progress to a callback and messages to the logger `alma`."""

    on_progress: OnProgress | None = None

    def say(self, text: str) -> None:
        logger.info(text)

    def show(self, progress: Progress) -> None:
        if self.on_progress:
            self.on_progress(progress)


def train(
    task: str,
    *,
    out: str | Path,
    method: str = "alma",
    preset: str = "fast",
    actors: Literal["aqmix", "refil"] | None = None,
    seed: int = 0,
    task_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    devices: int = 1,
    force: bool = False,
    on_progress: OnProgress | None = None,
    wandb: bool = False,
) -> Policy:
    """Train a method on a task, with the run folder `out`, and return the trained policy.

    `task` is a registered name or `module:Class`, `task_options` are its options. `preset` is the name of a preset, or
    a preset file (.toml, .json). `options` are hyperparameters that differ from the preset, by their path:
    `{"actors.n_step": 3, "steps": 100_000}`. `actors` chooses the loss of the actors: the TD loss of the mixed values
    (`aqmix`), or also that of REFIL's imagined groups (`refil`); None leaves that to the preset. The mixer is an
    option, `actors.networks.mixer`. `devices` is the number of devices to share the run out over: accelerators, or
    processor cores if there are none and JAX was not used before. `on_progress` is called after every chunk of
    training. `wandb` logs to Weights & Biases too. `force` deletes an earlier run in the folder. `alma.resume`
    continues an interrupted run.
    """
    runtime.configure()
    runtime.use_cpu_devices(devices)
    if wandb:
        require_wandb()  # before anything is written
    base, preset_options = find_preset(preset, task)
    chosen = with_overrides(with_actors(preset_options, actors), options or {})
    config = RunConfig(task, dict(task_options or {}), method, base, seed, chosen)
    folder = RunFolder(Path(out))
    config.make_trainer()  # raises errors before anything is written
    check_room(config)
    folder.create(config, force)
    return _train(folder, config, devices, on_progress, wandb)


def resume(
    run: str | Path,
    *,
    steps: int | None = None,
    devices: int | None = None,
    on_progress: OnProgress | None = None,
    wandb: bool = False,
    trust: bool = False,
) -> Policy:
    """Continue an interrupted run from its last checkpoint, or a finished one up to `steps` environment steps.

    Returns the trained policy. `devices` is the number of devices, as before if not given. A run of a task or method of
    your own names its module, which is only imported with `trust=True`.
    """
    runtime.configure()
    if wandb:
        require_wandb()
    folder = RunFolder(Path(run))
    config = folder.read_config(trust)
    devices = devices or folder.devices or 1
    runtime.use_cpu_devices(devices)
    if steps is not None:
        config = extend(folder, config, steps, logger.warning)
    return _train(folder, config, devices, on_progress, wandb)


def _train(folder: RunFolder, config: RunConfig, devices: int, on_progress: OnProgress | None, wandb: bool) -> Policy:
    run = Run(folder, config, CallbackDisplay(on_progress), wandb)
    train_runs([run], make_program(run.trainer, devices), run.display)
    return load(folder.path, trust=config.own_code)


def evaluate(
    policy: Policy | str | Path,
    *,
    episodes: int = 512,
    seed: int = EVALUATION_SEED,
    actors: Policy | str | None = None,
    allocator: Policy | str | None = None,
    task_options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Results:
    """Play whole episodes without exploration and return their results.

    `policy` is a policy, or anything that `alma.load` accepts. `actors` and `allocator` replace the policy's own:
    `actors` by those of another policy, `random`, or a scripted policy of the task; `allocator` by that of another
    policy, `search`, `random`, `heuristic`, `heuristic:NAME` or `fixed:SUBTASKS`. `task_options` are task options that
    differ from training. `trust` is that of `alma.load`.
    """
    check_seed(seed)
    policy = _loaded(policy, trust)
    task = policy.task_with(task_options)
    return play_episodes(task, *policy.team_with(actors, allocator, task), episodes, seed)


def watch(
    policy: Policy | str | Path,
    *,
    out: str | Path = "replay.html",
    episodes: int = 3,
    seed: int = EVALUATION_SEED,
    actors: Policy | str | None = None,
    allocator: Policy | str | None = None,
    task_options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Path:
    """Write an HTML page that replays the first episodes that `alma.evaluate` plays, with the values behind decisions.

    The arguments are those of `alma.evaluate`; `out` must end in .html and is replaced if it exists. Returns its path.
    """
    out = Path(out)
    if out.suffix.lower() != PAGE:
        raise ValueError(f"a page ends in {PAGE}, not in {out.suffix!r}: write pictures with `alma watch --out`")
    check_seed(seed)
    loaded = _loaded(policy, trust)
    task = loaded.task_with(task_options)
    labels = team_labels(name_of(policy), loaded.config.method, name_of(actors), name_of(allocator))
    recordings = record(task, *loaded.team_with(actors, allocator, task), episodes, seed)
    return write_page(out, page_data(task, [Side(labels, recordings)], seed))


def _loaded(policy: Policy | str | Path, trust: bool) -> Policy:
    return policy if isinstance(policy, Policy) else load(policy, trust=trust)
