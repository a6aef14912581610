"""The command line: a thin layer that reads flags, calls an engine and draws what it says."""
