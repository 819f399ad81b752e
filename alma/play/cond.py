"""`jax.lax.cond` that still skips work under `vmap`, where several runs are trained in one program."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from alma.play.trees import select

Result = TypeVar("Result")


def cond(condition: Bool[Array, ""], yes: Callable[..., Result], no: Callable[..., Result], *operands: Any) -> Result:
    """`yes(*operands)` if the condition holds, else `no(*operands)`.

    Under `vmap`, `jax.lax.cond` computes both for every row. Here, `yes` is only computed, for all rows, if the
    condition holds in any of them; `no` must cost next to nothing. The functions must not use traced arrays but their
    operands.
    """

    @jax.custom_batching.custom_vmap
    def run(condition: Bool[Array, ""], *operands: Any) -> Result:
        return jax.lax.cond(condition, yes, no, *operands)

    @run.def_vmap
    def run_rows(rows: int, is_batched: Any, condition: Bool[Array, " n"], *operands: Any) -> tuple[Result, Any]:
        def broadcast(leaf: Array, batched: bool) -> Array:
            return leaf if batched else jnp.broadcast_to(leaf, (rows, *leaf.shape))

        condition, *operands = jax.tree.map(broadcast, [condition, *operands], list(is_batched))
        skipped = jax.vmap(no)

        def compute(*operands: Any) -> Result:
            return select(condition, jax.vmap(yes)(*operands), skipped(*operands))

        result = jax.lax.cond(jnp.any(condition), compute, skipped, *operands)
        return result, jax.tree.map(lambda _: True, result)

    return run(condition, *operands)
