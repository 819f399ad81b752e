"""Layers and small functions that networks are made of. Leading axes are batches."""
