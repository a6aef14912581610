"""word2vec: text -> ids -> two matrices of vectors, on the CPU (numba) or any torch device."""
