"""The high level: allocators, which give every agent a subtask."""
