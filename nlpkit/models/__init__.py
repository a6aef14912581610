"""What is learned: one file for each kind of language model, behind one contract."""
