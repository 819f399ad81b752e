"""Playing: decision points, parallel environments, whole episodes."""
