"""Scores of answers, and how sure one can be of them."""
