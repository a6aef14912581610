"""Text into tokens and ids: tokenisers, vocabularies, codecs, columns."""
