"""Replays of episodes, with the values behind every decision, as an HTML page or as pictures."""
