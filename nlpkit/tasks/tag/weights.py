"""The tensors of a tagger: what ``weights.safetensors`` must hold, by its settings and words."""

from __future__ import annotations

from nlpkit.errors import NlpkitError
from nlpkit.nn.encoder_config import EncoderConfig, within
from nlpkit.nn.inference import Weights
from nlpkit.schema import AGAIN, Shape, check_tensors
from nlpkit.tasks.tag.features import (
    AFFIX_BUCKETS,
    AFFIX_DIM,
    CHAR_DIM,
    CHAR_FILTERS,
    CHAR_KERNEL,
    LINEAR,
    MIX,
    SHAPE_BUCKETS,
    VECTOR_MIX,
    FeatureExtractor,
)
from nlpkit.tasks.tag.hashed_features import FeaturePlaces
from nlpkit.tasks.tag.settings import ResolvedTagger


def check_weights(
    weights: Weights,
    settings: ResolvedTagger,
    extractor: FeatureExtractor,
    n_tags: int,
    where: str,
    state_size: int = 0,
    layers: int = 1,
) -> None:
    """Refuse weights that are not those of a tagger with these settings, words and tags.

    ``state_size`` and ``layers`` are of an encoder beside the features.
    """
    if settings.layers > len(weights):
        raise NlpkitError(f"{where} has too few tensors for {settings.layers} layers", hint=AGAIN)
    vectors = weights.get("words.vectors")
    vector_dim = 0
    if extractor.words.vector_words and vectors is not None and vectors.ndim == 2:
        vector_dim = vectors.shape[1]
    shapes = tensor_shapes(settings, extractor, n_tags, vector_dim, state_size)
    if layers > 1:
        shapes |= {"mix.scores": (layers,), "mix.gamma": ()}
    whole = [name for name in shapes if name.endswith("known")]
    sizes = check_tensors(weights, shapes, where, whole=whole)
    for reach in ("near", "far") if settings.linear_features == "yes" else ():
        known, rows = sizes[f"{reach} features"], sizes[f"{reach} rows"]
        if rows != known + 1:  # row 0 is for features that are not known
            raise NlpkitError(f"{where}: {known} {reach} features and {rows} rows", hint=AGAIN)


def tensor_shapes(
    settings: ResolvedTagger,
    extractor: FeatureExtractor,
    n_tags: int,
    vector_dim: int,
    state_size: int = 0,
) -> dict[str, Shape]:
    """Every tensor by name; ``vector_dim`` is the length of given vectors, 0 without any."""
    size = MIX + (VECTOR_MIX if extractor.words.vector_words else 0)
    encoder = settings.encoder_config(size + state_size)
    return {
        **within("words.", _word_shapes(settings, extractor, size, vector_dim)),
        **within("encoder.", encoder.shapes()),
        "output.weight": (n_tags, encoder.size),
        "output.bias": (n_tags,),
        **within(LINEAR, _linear_shapes(settings, n_tags, vector_dim)),
        **({"crf.scores": (n_tags + 1, n_tags + 1)} if settings.crf == "yes" else {}),
    }


def _word_shapes(
    settings: ResolvedTagger, extractor: FeatureExtractor, size: int, vector_dim: int
) -> dict[str, Shape]:
    buckets = AFFIX_BUCKETS if extractor.affixes else SHAPE_BUCKETS
    width = settings.word_dim + AFFIX_DIM
    shapes: dict[str, Shape] = {
        "word.weight": (len(extractor.words), settings.word_dim),
        "affixes.weight": (buckets, AFFIX_DIM),
    }
    if settings.chars != "none":
        width += CHAR_FILTERS
        shapes["chars.embedding.weight"] = (len(extractor.characters), CHAR_DIM)
    if settings.chars == "cnn":
        shapes["chars.convolution.weight"] = (CHAR_FILTERS, CHAR_DIM, CHAR_KERNEL)
        shapes["chars.convolution.bias"] = (CHAR_FILTERS,)
    elif settings.chars == "lstm":
        inner = EncoderConfig("lstm", CHAR_DIM, CHAR_FILTERS // 2)
        shapes |= within("chars.", inner.shapes())
    if extractor.words.vector_words:
        width += vector_dim
        shapes["vectors"] = (len(extractor.words.vector_words) + 1, vector_dim)
        if settings.fine_tune:
            shapes["correction.weight"] = (len(extractor.words), vector_dim)
    return {**shapes, "mix.weight": (size, width), "mix.bias": (size,)}


def _linear_shapes(settings: ResolvedTagger, n_tags: int, vector_dim: int) -> dict[str, Shape]:
    if settings.linear_features == "no":
        return {}
    places = FeaturePlaces.of(settings.causal)
    shapes: dict[str, Shape] = {
        "near.known": ("near features",),
        "near.table.weight": ("near rows", len(places.near) * n_tags),
        "far.known": ("far features",),
        "far.table.weight": ("far rows", len(places.far) * n_tags),
    }
    if vector_dim:
        shapes["of_vector.weight"] = (len(places.in_order) * n_tags, vector_dim)
    return shapes
