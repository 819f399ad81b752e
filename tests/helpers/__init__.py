"""What several tests need: small tasks, random situations, states drawn by hand."""
