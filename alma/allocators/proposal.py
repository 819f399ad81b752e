"""Autoregressive proposals: allocations are drawn agent by agent, each conditioned on the choices before it.

Proposal networks differ in how they encode a state (`ProposalEncoding`); drawing an allocation and computing its
log-probability are the same for all.
"""

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from alma.nn.masks import allocation_matrix
from alma.task.choice import choose_by_logits
from alma.task.view import NOBODY, View


@runtime_checkable
class ProposalEncoding(Protocol):
    """A state as a proposal network encodes it: everything that does not depend on the allocation is precomputed.

    While an allocation is drawn, a `memory` holds what the next agents need to know of the choices before them.
    """

    @property
    def allowed(self) -> Bool[Array, "*b A M"]:
        """Mask of the subtasks that each agent may take."""

    def start(self) -> Any:
        """The memory before the first agent has chosen a subtask."""

    def logits(self, agent: int, memory: Any) -> Float[Array, "*b M"]:
        """The logits of an agent's choice among all subtasks, given the choices before it."""

    def remember(self, agent: int, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        """The memory after an agent has taken a subtask (`taken`, one-hot; zeros if none)."""


def allowed_subtasks(view: View, agents: int) -> Bool[Array, "*b A M"]:
    """Present agents may take any active subtask."""
    return view.present[..., :agents, None] & view.active[..., None, :]


def propose(key: PRNGKeyArray, encoding: ProposalEncoding) -> Int[Array, "*b A"]:
    """Draw one allocation; agents that may take no subtask get `NOBODY`."""
    allowed, memory, chosen = encoding.allowed, encoding.start(), []
    draws = jax.random.uniform(key, allowed.shape[:-1])
    for agent in range(allowed.shape[-2]):
        logits = jnp.where(allowed[..., agent, :], encoding.logits(agent, memory), -1e9)
        choice = choose_by_logits(draws[..., agent], logits)
        choice = jnp.where(jnp.any(allowed[..., agent, :], axis=-1), choice, NOBODY)
        memory = encoding.remember(agent, memory, jax.nn.one_hot(choice, allowed.shape[-1]))
        chosen.append(choice)
    return jnp.stack(chosen, axis=-1)


def log_probability(
    encoding: ProposalEncoding, allocation: Int[Array, "*b A"]
) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
    """The log-probability of an allocation, and the entropy along its prefixes.

    That entropy is the sum over agents of the entropy of the agent's choice given the choices before it. In expectation
    over proposals, it equals the entropy of whole allocations.
    """
    allowed, memory = encoding.allowed, encoding.start()
    members = allocation_matrix(allocation, allowed.shape[-1])
    rows = []
    for agent in range(allowed.shape[-2]):
        rows.append(encoding.logits(agent, memory))
        memory = encoding.remember(agent, memory, members[..., agent, :])
    logs = jax.nn.log_softmax(jnp.where(allowed, jnp.stack(rows, axis=-2), -1e9))
    total = jnp.sum(jnp.where(members > 0, logs, 0), axis=(-1, -2))
    return total, -jnp.sum(jnp.where(allowed, jnp.exp(logs) * logs, 0), axis=(-1, -2))
