"""Checkpoints of other programs, one strict reader and writer each."""
