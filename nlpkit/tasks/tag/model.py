"""The tagger as a torch module, for training: word features, encoder, softmax or CRF.

    word      embedding (hidden at random, rare words more often, so that <unk> is learned)
    vector    a row of given vectors, frozen; ``fine_tune`` learns a correction for known words
    chars     a convolution or an LSTM over the characters of the word
    affixes   the sum of embeddings of its shape and, unless left out, prefixes and suffixes
      \\ all together -> one layer -> encoder over the sentence -> a score for each tag
    states    of a pre-trained encoder that stays as it is, beside the features, if one is given
    linear    the word, its shape and affixes, its vector, and those of its neighbours (of those two
              words away not the affixes), known by their hashes: each has a score for each tag, and
              these are added to the encoder's

The linear features, known by their hashes, are what a classic CRF looks at. They learn what single
words and endings say, which an encoder is slow to, and the encoder learns the rest; in some
sentences of training one of the two has to do without the other, so that both learn to.

Tags of entities have parts in common: what speaks for B-PER speaks for I-PER as well, being a
person. So the scores of encoder and features are learned for each tag, type and prefix, and those
of a tag's parts are added up; a trained model holds the sums alone.

Features are computed once for each distinct word of a batch. Sentences are padded at their end,
which changes nothing. Prediction is in ``predictor``, in numpy, with the weights this module leaves
behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.encoder import Encoded, make_encoder, read_both_ways
from nlpkit.nn.layer_mix import LayerMix
from nlpkit.tasks.tag.features import (
    AFFIX_BUCKETS,
    AFFIX_DIM,
    CHAR_DIM,
    CHAR_FILTERS,
    CHAR_KERNEL,
    LINEAR,
    MIX,
    SHAPE_BUCKETS,
    SLOPE,
    VECTOR_MIX,
    FeatureExtractor,
    WordFeatures,
    dropout_rate,
)
from nlpkit.tasks.tag.hashed_features import (
    FAR_FEATURES,
    N_HASHES,
    FeaturePlaces,
    find_rows,
    known_features,
)
from nlpkit.tasks.tag.head import TagHead, TagParts
from nlpkit.tasks.tag.settings import ResolvedTagger
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.training.batches import Ragged

LINEAR_DROPOUT = 0.3
ALONE = (
    0.2  # in this share of sentences the encoder, and in as many linear features, stay out of it
)


class SharedDropout(nn.Dropout):
    """Dropout that hides the same numbers at every token of a sentence, (B, T, C) -> (B, T, C).

    One mask a sentence suits a recurrent encoder better than one a token, and is cheaper to draw.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return input
        mask = torch.empty_like(input[:, :1]).bernoulli_(1 - self.p) / (1 - self.p)
        return input * mask


class CharCNN(nn.Module):
    """Convolution over characters and the highest response of each filter, (U, L) -> (U, C)."""

    def __init__(self, n_chars: int, dim: int, filters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_chars, dim, padding_idx=0)
        self.convolution = nn.Conv1d(dim, filters, CHAR_KERNEL, padding=CHAR_KERNEL // 2)

    def forward(self, characters: Tensor) -> Tensor:
        # what each character adds to each filter at each tap: there are so few characters that a
        # convolution is look-ups in these rows, and what is padding costs nothing
        every = self.embedding(
            torch.arange(self.embedding.num_embeddings, device=characters.device)
        )
        shares = torch.einsum("nd,cdt->tnc", every, self.convolution.weight)
        n_taps, n_chars, _ = shares.shape
        around = F.pad(characters, (n_taps // 2, n_taps // 2)).unfold(1, n_taps, 1)  # (U, L, taps)
        inside = characters != 0
        places = around[inside] + n_chars * torch.arange(n_taps, device=characters.device)
        responses = F.embedding_bag(places, shares.flatten(0, 1), mode="sum")  # (N, C)
        highest = torch.segment_reduce(responses, "max", lengths=inside.sum(dim=1), unsafe=True)
        assert self.convolution.bias is not None
        return F.relu(highest + self.convolution.bias)


class CharLSTM(nn.Module):
    """A bidirectional LSTM over characters, its two last states side by side."""

    def __init__(self, n_chars: int, dim: int, filters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_chars, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, filters // 2, batch_first=True, bidirectional=True)

    def forward(self, characters: Tensor) -> Tensor:
        mask = characters != 0
        states = read_both_ways(self.rnn, self.embedding(characters), mask)  # (U, L, C)
        ends = states[torch.arange(len(states)), mask.sum(dim=1) - 1]
        half = states.size(2) // 2
        return torch.cat([ends[:, :half], states[:, 0, half:]], dim=1)


class WordEncoder(nn.Module):
    """Features of distinct words -> one vector each, (U, mix)."""

    hide_rates: Tensor
    vectors: Tensor

    def __init__(
        self, settings: ResolvedTagger, words: Vocab, n_chars: int, vectors: np.ndarray | None
    ) -> None:
        super().__init__()
        self.settings = settings
        self.unknown = words.ids[UNK]
        rates = [dropout_rate(count, settings.word_dropout) for count in words.counts]
        self.register_buffer("hide_rates", torch.tensor(rates), persistent=False)
        self.word = nn.Embedding(len(words), settings.word_dim, sparse=True)
        nn.init.normal_(self.word.weight, std=0.1)
        width = settings.word_dim
        if vectors is not None:
            self.register_buffer("vectors", torch.from_numpy(vectors))  # row 0 is for no vector
            width += vectors.shape[1]
            if settings.fine_tune:
                self.correction = nn.Embedding(len(words), vectors.shape[1], sparse=True)
                nn.init.zeros_(self.correction.weight)
        self.has_vectors = vectors is not None
        if settings.chars != "none":
            kind = CharCNN if settings.chars == "cnn" else CharLSTM
            self.chars = kind(n_chars, CHAR_DIM, CHAR_FILTERS)
            width += CHAR_FILTERS
        buckets = AFFIX_BUCKETS if settings.affixes == "yes" else SHAPE_BUCKETS
        self.affixes = nn.EmbeddingBag(buckets, AFFIX_DIM, mode="sum", sparse=True)
        nn.init.normal_(self.affixes.weight, std=0.1)
        width += AFFIX_DIM
        self.size = MIX + (VECTOR_MIX if self.has_vectors else 0)
        self.mix = nn.Linear(width, self.size)

    def tables(self) -> list[Tensor]:
        """The embeddings, which a batch looks at by rows."""
        found = [self.word.weight, self.affixes.weight]
        return [*found, self.correction.weight] if self.settings.fine_tune else found

    def forward(
        self, words: Tensor, vectors: Tensor, characters: Tensor, affixes: Tensor
    ) -> Tensor:
        if self.training:
            rates = self.hide_rates.index_select(0, words)
            hidden = torch.rand_like(rates) < rates
            words = torch.where(hidden, self.unknown, words)
        parts = [self.word(words)]
        if self.settings.chars != "none":
            parts.append(self.chars(characters))
        parts.append(self.affixes(affixes))
        if self.training:
            # hidden as a whole: no part may rely on another
            rate = self.settings.part_dropout
            parts = [part * (torch.rand_like(part[:, :1]) >= rate) for part in parts]
        if self.has_vectors:
            # never hidden: words without one are enough to learn to do without
            parts.append(self._vector_rows(words, vectors))
        # a non-linearity, so that what a part says can depend on another: a capital on a word
        # that has none
        return F.leaky_relu(self.mix(torch.cat(parts, dim=1)), SLOPE)

    def _vector_rows(self, words: Tensor, vectors: Tensor) -> Tensor:
        rows = self.vectors.index_select(0, vectors)
        if self.settings.fine_tune:
            known = (words != self.unknown).unsqueeze(1)
            rows = rows + self.correction(words) * known
        return rows


class LinearTable(nn.Module):
    """Rows of scores for known features, (U, N) -> (U, width); row 0, for all others, stays 0."""

    known: Tensor
    counts: Tensor

    def __init__(self, hashes: np.ndarray, word_counts: np.ndarray, width: int) -> None:
        super().__init__()
        known, counts = known_features(hashes, word_counts, width)
        self.register_buffer("known", torch.from_numpy(known))
        # the first row is of features that are not known
        self.register_buffer("counts", torch.from_numpy(np.append(1, counts)), persistent=False)
        self.table = nn.EmbeddingBag(1 + len(known), width, mode="sum", sparse=True, padding_idx=0)
        nn.init.zeros_(self.table.weight)

    def forward(self, rows: Tensor) -> Tensor:
        weights = None
        if self.training:
            kept = torch.rand(rows.shape, device=rows.device) >= LINEAR_DROPOUT
            weights = kept / (1 - LINEAR_DROPOUT)
        found: Tensor = self.table(rows, per_sample_weights=weights)
        return found


class LinearFeatures(nn.Module):
    """Scores of tags straight from features of a word and its neighbours, (B, T) -> (B, T, K).

    A row of a table has the scores of all parts of tags for each place where the feature may stand.
    """

    def __init__(
        self,
        hashes: np.ndarray,
        word_counts: np.ndarray,
        parts: TagParts,
        causal: bool,
        vector_size: int,
    ) -> None:
        super().__init__()
        places = FeaturePlaces.of(causal)
        self.places, self.parts = places.in_order, parts
        self.near = LinearTable(hashes, word_counts, len(places.near) * parts.count)
        self.far = LinearTable(hashes[:, FAR_FEATURES], word_counts, len(places.far) * parts.count)
        if vector_size:
            self.of_vector = nn.Linear(vector_size, len(self.places) * parts.n_tags, bias=False)
            nn.init.zeros_(self.of_vector.weight)

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The rows of features in both tables, (U, N_HASHES) -> (U, N_HASHES + far ones)."""
        near = find_rows(self.near.known.cpu().numpy(), hashes)
        far = find_rows(self.far.known.cpu().numpy(), hashes[:, FAR_FEATURES])
        return np.concatenate([near, far], axis=1)

    def forward(
        self, rows: Tensor, vectors: Tensor | None, positions: Tensor, mask: Tensor
    ) -> Tensor:
        near, far = rows.tensor_split([N_HASHES], dim=1)
        distinct = self.parts(torch.cat([self.near(near), self.far(far)], dim=1))
        if vectors is not None:
            distinct = distinct + self.of_vector(F.dropout(vectors, LINEAR_DROPOUT, self.training))
        # each token adds up what the words around it say of their places: a row of scores for each
        # word and place, and first such rows of zeros, for where a sentence has no word
        said = F.pad(distinct, (0, 0, 1, 0)).unflatten(1, (len(self.places), -1)).flatten(0, 1)
        reach = max(map(abs, self.places))
        around = F.pad((positions + 1) * mask, (reach, reach)).unfold(
            1, 2 * reach + 1, 1
        )  # (B, T, window)
        places = torch.arange(len(self.places), device=positions.device)
        wanted = around[:, :, [reach + place for place in self.places]] * len(self.places) + places
        scores = F.embedding_bag(wanted.flatten(0, 1), said, mode="sum")
        return scores.unflatten(0, positions.shape)


class FeatureEncoder(nn.Module):
    """A ``TokenEncoder`` learned from scratch: word features, then an encoder over the sentence."""

    def __init__(
        self,
        settings: ResolvedTagger,
        extractor: FeatureExtractor,
        vectors: np.ndarray | None,
        state_size: int = 0,
    ) -> None:
        super().__init__()
        self.extractor = extractor
        n_chars = len(extractor.characters)
        self.words = WordEncoder(settings, extractor.words.vocab, n_chars, vectors)
        config = settings.encoder_config(self.words.size + state_size)
        self.encoder = make_encoder(config, settings.dropout)
        self.size = self.encoder.size
        self.dropout = SharedDropout(settings.dropout)

    def forward(
        self,
        features: WordFeatures,
        positions: Tensor,
        mask: Tensor,
        beside: Tensor | None = None,
    ) -> Tensor:
        """States (B, T, C); ``positions`` (B, T) says which distinct word each token is.

        ``beside`` are states (B, T, S) of another encoder.
        """
        columns = (features.words, features.vectors, features.characters, features.affixes)
        distinct = self.words(*(torch.from_numpy(part).to(positions.device) for part in columns))
        tokens = F.embedding(positions, distinct)  # (B, T, mix)
        if beside is not None:
            tokens = torch.cat([tokens, beside], dim=2)
        tokens = self.dropout(tokens)
        states: Tensor = self.encoder(tokens, None if mask.all() else mask)  # faster without
        return states

    def encode(self, sentences: Sequence[Sequence[str]]) -> Encoded:
        """The states of all words, (B, T, C)."""
        distinct = {word: None for words in sentences for word in words}
        places = {word: place for place, word in enumerate(distinct)}
        rows = Ragged([[places[word] for word in words] for words in sentences])
        device = self.words.mix.weight.device
        positions, mask = rows.pad(range(len(rows))).tensors(device)
        return Encoded(self(self.extractor.features(list(distinct)), positions, mask), mask)


class TaggerModel(nn.Module):
    """Scores (B, T, K) of the tags of sentences."""

    def __init__(
        self,
        settings: ResolvedTagger,
        extractor: FeatureExtractor,
        n_tags: int,
        hashes: np.ndarray,
        word_counts: np.ndarray,
        vectors: np.ndarray | None = None,
        legal: list[list[bool]] | None = None,
        parts: list[list[bool]] | None = None,
        state_size: int = 0,
        mix: LayerMix | None = None,
    ) -> None:
        super().__init__()
        self.tokens = FeatureEncoder(settings, extractor, vectors, state_size)
        self.states = nn.ModuleDict({} if mix is None else {"mix": mix})
        self.head = TagHead(
            self.tokens.size,
            n_tags,
            SharedDropout(settings.dropout),
            crf=settings.crf == "yes",
            legal=legal,
            parts=parts,
        )
        size = 0 if vectors is None else vectors.shape[1]
        self.linear = (
            LinearFeatures(hashes, word_counts, self.head.parts, settings.causal, size)
            if settings.linear_features == "yes"
            else None
        )

    def prepared(self, features: WordFeatures) -> WordFeatures:
        """Features as ``forward`` wants them: rows of the tables in the place of hashes."""
        if self.linear is None:
            return features
        return replace(features, hashes=self.linear.find(features.hashes))

    def forward(
        self,
        features: WordFeatures,
        positions: Tensor,
        mask: Tensor,
        layers: Tensor | None = None,
    ) -> Tensor:
        """Scores of the tokens; ``positions`` (B, T) says which distinct word each token is.

        ``layers`` (L, B, T, S) are what a pre-trained encoder says of them.
        """
        device, words = positions.device, self.tokens.words
        beside = None
        if layers is not None:
            beside = self.states["mix"](layers) if "mix" in self.states else layers[0]
        deep = self.head(self.tokens(features, positions, mask, beside), mask)  # (B, T, K)
        if self.linear is None:
            return deep
        rows = None
        if words.has_vectors:
            rows = words.vectors.index_select(0, torch.from_numpy(features.vectors).to(device))
        linear = self.linear(torch.from_numpy(features.hashes).to(device), rows, positions, mask)
        if self.training:
            chance = torch.rand(len(positions), 1, 1, device=device)
            deep, linear = deep * (chance >= ALONE), linear * (chance <= 1 - ALONE)
        return deep + linear

    def loss(
        self,
        features: WordFeatures,
        positions: Tensor,
        tags: Tensor,
        mask: Tensor,
        layers: Tensor | None = None,
    ) -> Tensor:
        """Mean loss a token against the right tags (B, T)."""
        return self.head.loss(self(features, positions, mask, layers), tags, mask)

    def weights(self) -> dict[str, Tensor]:
        """What prediction needs, with the scores of parts added up."""
        weights: dict[str, Tensor] = {}
        for name, value in self.state_dict().items():
            part, _, rest = name.partition(".")
            weights[LINEAR + rest if part == "linear" else rest] = value
        parts = self.head.parts
        tables = [
            name for name in weights if name.startswith(LINEAR) and name.endswith(".table.weight")
        ]
        for name in (*tables, "output.bias"):
            weights[name] = parts(weights[name])
        weights["output.weight"] = parts(weights["output.weight"].T).T.contiguous()
        return weights
