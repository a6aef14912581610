"""What a user wants done: one folder for each group of commands."""
