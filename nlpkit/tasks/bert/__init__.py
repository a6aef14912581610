"""BERT at work: masked words, vectors of texts, search, senses; and its training."""
