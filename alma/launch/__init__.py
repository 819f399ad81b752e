"""Training many runs: on this machine, on Ray or on SLURM."""
