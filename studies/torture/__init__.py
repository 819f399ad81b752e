"""A campaign against runs and files: kills, damaged files, full disks and shuffled arguments. `make torture` runs it."""
