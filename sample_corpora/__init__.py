"""The sample corpora, installed as the package ``nlpkit.sample_corpora`` (see README.md)."""
