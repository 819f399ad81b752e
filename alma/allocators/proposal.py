"""Autoregressive proposals: allocations are drawn agent by agent, each conditioned on the choices before it.

Proposal networks differ in how they encode a state (`ProposalEncoding`); drawing an allocation and computing its
log-probability are the same for all.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from alma.nn.masks import allocation_matrix
from alma.task.choice import choose_by_logits
from alma.task.view import NOBODY, View

UNROLLED = 16
"""Up to this number of agents, loops over agents are unrolled, which is faster to run and slower to compile."""

Index: TypeAlias = int | Int[Array, ""]
"""The index of an agent."""


@runtime_checkable
class ProposalEncoding(Protocol):
    """A state as a proposal network encodes it: everything that does not depend on the allocation is precomputed.

    While an allocation is drawn, a `memory` holds what the next agents need to know of the choices before them.
    """

    @property
    def allowed(self) -> Bool[Array, "*b A M"]:
        """Mask of the subtasks that each agent may take."""

    @property
    def memory_grows(self) -> bool:
        """Whether the memory has another structure after each agent, so that loops over agents must be unrolled."""

    def start(self) -> Any:
        """The memory before the first agent has chosen a subtask."""

    def logits(self, agent: Index, memory: Any) -> Float[Array, "*b M"]:
        """The logits of an agent's choice among all subtasks, given the choices before it."""

    def remember(self, agent: Index, memory: Any, taken: Float[Array, "*b M"]) -> Any:
        """The memory after an agent has taken a subtask (`taken`, one-hot; zeros if none)."""


def allowed_subtasks(view: View, agents: int) -> Bool[Array, "*b A M"]:
    """Present agents may take any active subtask."""
    return view.present[..., :agents, None] & view.active[..., None, :]


def agent_by_agent(
    encoding: ProposalEncoding, step: Callable[[Index, Any], tuple[Any, Array]]
) -> Shaped[Array, "A *r"]:
    """Go through all agents in their order: `step` gets an agent and the memory, and returns the next memory and a
    result. Returns the results of all agents."""
    agents, memory = encoding.allowed.shape[-2], encoding.start()
    if agents > UNROLLED and not encoding.memory_grows:
        return jax.lax.scan(lambda memory, agent: step(agent, memory), memory, jnp.arange(agents))[1]
    results = []
    for agent in range(agents):
        memory, result = step(agent, memory)
        results.append(result)
    return jnp.stack(results)


def propose(key: PRNGKeyArray, encoding: ProposalEncoding) -> Int[Array, "*b A"]:
    """Draw one allocation; agents that may take no subtask get `NOBODY`."""
    allowed = encoding.allowed
    draws = jax.random.uniform(key, allowed.shape[:-1])

    def choose(agent: Index, memory: Any) -> tuple[Any, Int[Array, "*b"]]:
        logits = jnp.where(allowed[..., agent, :], encoding.logits(agent, memory), -1e9)
        choice = choose_by_logits(draws[..., agent], logits)
        choice = jnp.where(jnp.any(allowed[..., agent, :], axis=-1), choice, NOBODY)
        return encoding.remember(agent, memory, jax.nn.one_hot(choice, allowed.shape[-1])), choice

    return jnp.moveaxis(agent_by_agent(encoding, choose), 0, -1)


def draw_proposals(key: PRNGKeyArray, encoding: ProposalEncoding, count: int) -> Int[Array, "*b P A"]:
    """Draw `count` allocations."""
    return jax.vmap(propose, in_axes=(0, None), out_axes=-2)(jax.random.split(key, count), encoding)


def log_probability(
    encoding: ProposalEncoding, allocation: Int[Array, "*b A"]
) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
    """The log-probability of an allocation, and the entropy along its prefixes.

    That entropy is the sum over agents of the entropy of the agent's choice given the choices before it. In expectation
    over proposals, it equals the entropy of whole allocations.
    """
    allowed = encoding.allowed
    members = allocation_matrix(allocation, allowed.shape[-1])

    def follow(agent: Index, memory: Any) -> tuple[Any, Float[Array, "*b M"]]:
        logits = encoding.logits(agent, memory)
        return encoding.remember(agent, memory, members[..., agent, :]), logits

    rows = jnp.moveaxis(agent_by_agent(encoding, follow), 0, -2)
    logs = jax.nn.log_softmax(jnp.where(allowed, rows, -1e9))
    total = jnp.sum(jnp.where(members > 0, logs, 0), axis=(-1, -2))
    return total, -jnp.sum(jnp.where(allowed, jnp.exp(logs) * logs, 0), axis=(-1, -2))
