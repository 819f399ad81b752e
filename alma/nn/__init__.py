"""Layers, attention, masks and output heads that the networks are built from. All leading axes are batch axes."""
