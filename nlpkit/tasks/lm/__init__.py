"""GPT-style language models of running text."""
