"""The type of the parameters of networks."""

from typing import Any, TypeAlias

Params: TypeAlias = Any
"""The parameters of a network, or of a learner with several networks: a pytree of arrays."""
