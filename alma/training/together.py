"""Several runs in one compiled program: the same training loop under `vmap`, with a seed for each run.

A run computes what it computes alone, up to rounding: products of matrices of several runs are computed together, which
adds up their terms in another order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Float

from alma.learning.learner import Metrics
from alma.play.team import TeamParams
from alma.training.program import Chunk
from alma.training.trainer import Trainer, TrainState, live_params

Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Together:
    """Runs with the same options and different seeds, trained under `vmap`; states have a leading axis of runs."""

    trainer: Trainer
    runs: int
    device_count: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.trainer.task.is_pure:
            raise ValueError(f"{self.trainer.task.spec.name} is a simulator: train its runs one by one")

    def begin(self, seeds: Sequence[int]) -> TrainState:
        return jax.jit(jax.vmap(lambda seed: self.trainer.init(jax.random.key(seed))))(jnp.asarray(seeds, jnp.uint32))

    def place(self, states: Sequence[TrainState]) -> TrainState:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def compile(self, iterations: int) -> Chunk:
        def chunk(state: TrainState) -> tuple[TrainState, Metrics]:
            return self.trainer.chunk(state, iterations)

        like = jax.eval_shape(lambda: self.begin(range(self.runs)))
        return jax.jit(jax.vmap(chunk), donate_argnums=0).lower(like).compile()

    def checkpoint(self, state: TrainState, run: int) -> TrainState:
        return _row(state, run)

    def live_params(self, state: TrainState, run: int) -> TeamParams:
        return _row(live_params(state.actors, state.allocator), run)

    def play_params(self, state: TrainState, run: int) -> TeamParams:
        return _row(self.trainer.play_params(state), run)

    def metrics(self, metrics: dict[str, Float[jax.Array, "runs"]], run: int) -> dict[str, float]:
        return {name: float(value[run]) for name, value in metrics.items()}


def _row(tree: Tree, run: int) -> Tree:
    """The arrays of one run."""
    return jax.tree.map(lambda leaf: leaf[run], tree)
