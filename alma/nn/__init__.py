"""Layers, masks and pytree helpers that the networks are built from. All leading axes are batch axes."""
