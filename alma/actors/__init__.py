"""The low level: agents that act on the subtasks they are allocated to."""
