"""A campaign against runs and files: kills, damaged files, full disks, shuffled arguments. `make torture`."""
