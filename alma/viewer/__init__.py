"""Watching what was learned: episodes with everything the players thought, as a page or as pictures."""
