"""The high level: who gives every agent a subtask."""
