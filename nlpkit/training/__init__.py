"""Training: the loop, and several processes."""
