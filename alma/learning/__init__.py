"""Losses as pure functions of parameters and batches."""
