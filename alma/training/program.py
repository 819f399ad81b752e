"""The interface between the loop of a run (`alma.runs.loop`) and a compiled training program.

`OneDevice` trains one run on one device; `alma.training.sharding` shares one run out over devices, and
`alma.training.together` trains several runs at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import jax

from alma.learning.learner import Metrics
from alma.play.team import TeamParams
from alma.training.trainer import Trainer, TrainState, compile_chunk, live_params

Chunk: TypeAlias = Callable[[TrainState], tuple[TrainState, Metrics]]
"""`Trainer.chunk`, compiled for a program."""


@runtime_checkable
class Program(Protocol):
    """A compiled training loop of one or several runs, which differ in their seeds alone.

    Its train state may be laid out in its own way; checkpoints are those of single runs on one device.
    """

    @property
    def device_count(self) -> int:
        """The number of devices that it runs on."""

    def begin(self, seeds: Sequence[int]) -> TrainState:
        """The state before the first step."""

    def place(self, states: Sequence[TrainState]) -> TrainState:
        """The state made of the checkpoints of all runs."""

    def compile(self, iterations: int) -> Chunk:
        """The training loop for a number of updates, compiled ahead of time."""

    def checkpoint(self, state: TrainState, run: int) -> TrainState:
        """The state of one run as checkpoints have it."""

    def live_params(self, state: TrainState, run: int) -> TeamParams:
        """The parameters of one run that are being trained, on one device."""

    def play_params(self, state: TrainState, run: int) -> TeamParams:
        """The parameters of one run that play, on one device."""

    def metrics(self, metrics: Metrics, run: int) -> dict[str, float]:
        """The metrics of one run."""


@dataclass(frozen=True)
class OneDevice:
    """One run on one device."""

    trainer: Trainer
    device_count: ClassVar[int] = 1

    def begin(self, seeds: Sequence[int]) -> TrainState:
        return self.trainer.init(jax.random.key(seeds[0]))

    def place(self, states: Sequence[TrainState]) -> TrainState:
        return states[0]

    def compile(self, iterations: int) -> Chunk:
        return compile_chunk(self.trainer, iterations)

    def checkpoint(self, state: TrainState, run: int) -> TrainState:
        return state

    def live_params(self, state: TrainState, run: int) -> TeamParams:
        return live_params(state.actors, state.allocator)

    def play_params(self, state: TrainState, run: int) -> TeamParams:
        return self.trainer.play_params(state)

    def metrics(self, metrics: Metrics, run: int) -> dict[str, float]:
        return {name: float(value) for name, value in metrics.items()}
