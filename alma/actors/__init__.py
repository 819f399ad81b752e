"""The low level: agents that work on the subtask they were given."""
