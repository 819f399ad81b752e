"""Training: methods, presets, and the fused loop of playing and learning."""
