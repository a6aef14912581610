"""CPU kernels, compiled by numba, and what they need of the processor."""
