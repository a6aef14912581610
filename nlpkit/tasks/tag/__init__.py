"""Sequence labelling: parts of speech, named entities, characters."""
