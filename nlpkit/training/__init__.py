"""Training: shared settings, the loop, one run for every trainer, batches, several processes."""
