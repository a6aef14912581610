"""Labels for whole texts."""
