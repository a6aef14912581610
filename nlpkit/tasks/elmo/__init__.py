"""ELMo: word vectors in context, from a forward and a backward language model."""
