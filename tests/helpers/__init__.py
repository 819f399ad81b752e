"""Helpers shared by tests: small tasks, random views, states set up by hand."""
