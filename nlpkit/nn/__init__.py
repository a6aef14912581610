"""Layers that more than one kind of model uses."""
