"""Playing: decisions and actions, teams, parallel environments, whole episodes."""
