"""Reproducing the figures of the paper: the runs they need, training and scoring them, statistics, tables and plots."""
