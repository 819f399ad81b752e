"""Whether a run fits into the memory of this machine, and which option to lower if it does not."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

import jax

from alma.runs.config import RunConfig
from alma.runs.runtime import UNKNOWN, machine_memory
from alma.training.memory import bytes_needed
from alma.training.options import TrainingOptions, with_overrides
from alma.training.presets import preset

SHARE = 0.5
"""Share of the memory that is used with the sizes that are advised; other programs need some too."""


def check_room(config: RunConfig, runs: int = 1) -> None:
    """Raise a ValueError if so many runs at once would need more memory than the machine has, and say what to lower."""
    there = device_memory()
    room = there // runs
    needed = _needed(config, config.options)
    if needed <= room:
        return
    size = "more memory than can be counted" if needed >= UNKNOWN else f"about {_size(needed * runs)} of memory"
    advice = "train fewer runs at a time" if needed <= there else _advice(config, needed, room)
    raise ValueError(f"training would need {size}, and there are {_size(there)}: {advice}")


def device_memory() -> int:
    """The memory that programs have on this machine, or on its accelerator, in bytes."""
    if jax.default_backend() == "cpu":
        return machine_memory()
    return int((jax.devices()[0].memory_stats() or {}).get("bytes_limit", UNKNOWN))


def _needed(config: RunConfig, options: TrainingOptions) -> int:
    """Bytes that a run with these options needs."""
    try:
        return bytes_needed(replace(config, options=options).make_trainer())
    except OverflowError:  # sizes that cannot even be counted
        return UNKNOWN


def _advice(config: RunConfig, needed: int, room: int) -> str:
    """Which option to lower, to how much; options are compared with those of the preset."""
    raised = dict(_raised(config.options, preset(config.preset, config.task)))
    lowered = {}
    for name, (_, usual) in raised.items():
        with suppress(ValueError):  # another option does not go with it
            lowered[name] = _needed(config, with_overrides(config.options, {name: usual}))
    if not lowered:
        return "choose a smaller preset, lower --collection.buffer or --actors.batch, or make the task smaller"
    name = min(lowered, key=lambda name: lowered[name])
    if lowered[name] > SHARE * room:
        every = " ".join(f"--{name} {usual}" for name, (_, usual) in raised.items())
        return f"lower several options, to {config.preset}'s for example: {every}"
    asked, fits = raised[name]
    at_least = fits + (asked - fits) * (SHARE * room - lowered[name]) / (needed - lowered[name])  # more if superlinear
    while 2 * fits <= at_least or (2 * fits < asked and _fits(config, name, 2 * fits, SHARE * room)):
        fits *= 2
    return f"lower --{name}, for example to {fits} instead of {asked}"


def _fits(config: RunConfig, name: str, value: int, room: float) -> bool:
    """Whether the run fits with another value of one option."""
    try:
        return _needed(config, with_overrides(config.options, {name: value})) <= room
    except ValueError:  # another option does not go with it
        return False


def _raised(options: Any, usual: Any, path: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """The whole numbers that are larger than in other options, by path: what they are, and what they are there."""
    for field in fields(options):
        now, before = getattr(options, field.name), getattr(usual, field.name)
        if is_dataclass(now):
            yield from _raised(now, before, f"{path}{field.name}.")
        elif type(now) is int and type(before) is int and now > before:
            yield f"{path}{field.name}", (now, before)


def _size(count: int) -> str:
    """Bytes in words."""
    for unit, size in (("TB", 10**12), ("GB", 10**9)):
        if count >= size:
            return f"{count / size:,.0f} {unit}"
    return f"{count / 10**6:,.0f} MB"
