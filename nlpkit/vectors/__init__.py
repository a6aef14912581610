"""Word vectors: keep, query, evaluate, convert and plot them (``word2vec`` trains them)."""
