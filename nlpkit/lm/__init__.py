"""Language models behind one contract: ``forward(idx, targets=None) -> (logits, loss)``."""
