"""Runs on disk: folders, checkpoints, logs, and policies made from them."""
