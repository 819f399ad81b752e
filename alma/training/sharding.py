"""One run over several devices: each has a share of the environments, of replay and of every batch.

Parameters, optimisers and counters are the same on all devices. Each device runs `Trainer.chunk` for its share; the
devices exchange averaged gradients, sums of weights and counts of episodes (`alma.nn.devices`), and nothing else.

Checkpoints have the layout of a run on one device, whatever the number of devices that wrote them:
`Sharded.checkpoint` and `Sharded.place` convert.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int, UInt

from alma.learning.learner import Metrics
from alma.learning.regroup import regroup
from alma.nn.devices import AXIS
from alma.play.team import TeamParams
from alma.task.keys import integers_as_keys, keys_as_integers
from alma.training.options import TrainingOptions
from alma.training.program import Chunk
from alma.training.trainer import Trainer, TrainState, live_params

Tree = TypeVar("Tree")

SAME, ROWS, COLUMNS = PartitionSpec(), PartitionSpec(AXIS), PartitionSpec(None, AXIS)
"""How an array is shared out: the same on all devices, or split along the first or the second axis."""

SHARED: Mapping[str, PartitionSpec] = {
    "rollout": ROWS,
    "steps.rows": COLUMNS,
    "steps.ends": ROWS,
    "steps.ended": ROWS,
    "decisions": ROWS,
}
"""The parts of the train state that are split; all others are the same on all devices."""


def layout(state: TrainState) -> Any:
    """How every array of a train state is shared out."""

    def of(path: Any, _: Any) -> PartitionSpec:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return next((spec for part, spec in SHARED.items() if f"{name}.".startswith(f"{part}.")), SAME)

    return jax.tree_util.tree_map_with_path(of, state)


def share_of(options: TrainingOptions, devices: int) -> TrainingOptions:
    """The options of one device's share of a run.

    Raises a ValueError if environments or batches cannot be divided evenly.
    """
    counts = {
        "environments": options.collection.environments,
        "actors.batch": options.actors.batch,
        "allocator.batch": options.allocator.batch,
    }
    for name, count in counts.items():
        if count % devices:
            raise ValueError(f"{name} must be a multiple of the {devices} devices, not {count}")
    collection = options.collection
    return replace(
        options,
        actors=replace(options.actors, batch=options.actors.batch // devices),
        allocator=replace(options.allocator, batch=options.allocator.batch // devices),
        collection=replace(
            collection,
            environments=collection.environments // devices,
            buffer=collection.buffer // devices,
            decisions=collection.decisions // devices,
            steps_per_update=collection.steps_per_update // devices,
        ),
    )


@dataclass(frozen=True)
class Sharded:
    """One run that is shared out over devices, of one or several processes."""

    trainer: Trainer
    devices: tuple[jax.Device, ...]

    def __post_init__(self) -> None:
        if not self.trainer.task.is_pure:
            raise ValueError(f"{self.trainer.task.spec.name} is a simulator: it trains on one device, not on several")

    @cached_property
    def share(self) -> Trainer:
        """The trainer of one device's share."""
        return replace(self.trainer, options=share_of(self.trainer.options, len(self.devices)))

    @cached_property
    def mesh(self) -> Mesh:
        return Mesh(np.asarray(self.devices), (AXIS,))

    @cached_property
    def layout(self) -> Any:
        return layout(self.share.state_like())

    @property
    def device_count(self) -> int:
        return len(self.devices)

    def begin(self, seeds: Sequence[int]) -> TrainState:
        def begin(seed: UInt[jax.Array, ""], planned: Int[jax.Array, ""]) -> TrainState:
            return _with_axis(replace(self.share.init(jax.random.key(seed)), planned=planned))

        program = self._on_each_device(begin, (SAME, SAME), self.layout)
        return program(np.uint32(seeds[0]), np.int32(self.trainer.options.steps))

    def compile(self, iterations: int) -> Chunk:
        def chunk(state: TrainState) -> tuple[TrainState, Metrics]:
            after, metrics = self.share.chunk(_without_axis(state), iterations)
            return _with_axis(after), metrics

        program = self._on_each_device(chunk, (self.layout,), (self.layout, SAME), donate=(0,))
        return program.lower(self._state_like()).compile()

    def _state_like(self) -> TrainState:
        """Shapes and dtypes of the state over all devices."""

        def whole(leaf: Any, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
            times = [len(self.devices) if part == AXIS else 1 for part in spec]
            shape = [*map(operator.mul, leaf.shape, times), *leaf.shape[len(times) :]]
            return jax.ShapeDtypeStruct(shape, leaf.dtype)

        return jax.tree.map(whole, jax.eval_shape(_with_axis, self.share.state_like()), self.layout)

    def _on_each_device(
        self, function: Callable[..., Any], inputs: Any, outputs: Any, donate: tuple[int, ...] = ()
    ) -> Any:
        """The function compiled to run on every device, on its share of the inputs."""
        # Without vma checks: control flow would need every constant marked as the same or different on the devices.
        mapped = jax.shard_map(function, mesh=self.mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
        return jax.jit(
            mapped, in_shardings=self._shardings(inputs), out_shardings=self._shardings(outputs), donate_argnums=donate
        )

    def _shardings(self, specs: Any) -> Any:
        return jax.tree.map(partial(NamedSharding, self.mesh), specs)

    # ---- to and from checkpoints

    def checkpoint(self, state: TrainState, run: int = 0) -> TrainState:
        """The state in the layout of one device, in the memory of the host. All processes must call it together."""
        numbers = jax.tree.map(_on_host, keys_as_integers(state))
        whole = replace(numbers, steps=regroup(numbers.steps, len(self.devices), 1))
        return integers_as_keys(_without_axis(whole), self.trainer.state_like())

    def place(self, states: Sequence[TrainState]) -> TrainState:
        numbers = _with_axis(keys_as_integers(states[0]))
        shared = jax.device_get(replace(numbers, steps=regroup(numbers.steps, 1, len(self.devices))))

        def put(leaf: np.ndarray, spec: PartitionSpec) -> jax.Array:
            return jax.make_array_from_callback(leaf.shape, NamedSharding(self.mesh, spec), lambda part: leaf[part])

        def with_keys(numbers: TrainState) -> TrainState:
            return integers_as_keys(numbers, self._state_like())

        return jax.jit(with_keys, out_shardings=self._shardings(self.layout))(jax.tree.map(put, shared, self.layout))

    def live_params(self, state: TrainState, run: int = 0) -> TeamParams:
        return _on_one_device(live_params(state.actors, state.allocator))

    def play_params(self, state: TrainState, run: int = 0) -> TeamParams:
        return _on_one_device(self.trainer.play_params(state))

    def metrics(self, metrics: Metrics, run: int = 0) -> dict[str, float]:
        return {name: float(value) for name, value in metrics.items()}


def _with_axis(state: TrainState) -> TrainState:
    """The state of a device as a row of the state of all: its count of ended episodes is its own."""
    return replace(state, steps=replace(state.steps, ended=state.steps.ended[None]))


def _without_axis(state: TrainState) -> TrainState:
    return replace(state, steps=replace(state.steps, ended=state.steps.ended[0]))


def _on_one_device(tree: Tree) -> Tree:
    """Arrays that are the same on all devices, as those of the first device of this process."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)


def _on_host(leaf: jax.Array) -> np.ndarray:
    """The whole array in the memory of this process."""
    if leaf.is_fully_replicated:
        return np.asarray(leaf.addressable_data(0))
    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
