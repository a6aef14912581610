"""nlpkit: the classics of neural NLP, from raw text to a sampled sentence, in the shell."""

__version__ = "0.1.0"
