"""Generating: the sampler, the loop, caches, speculative decoding."""
