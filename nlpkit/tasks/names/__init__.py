"""Name generators."""
