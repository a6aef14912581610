"""Encoder-decoders: what the recurrent ones and the transformer have in common.

An encoder turns a source (B, S) into a ``Memory``, once. The decoder is then trained on whole
targets (``hidden``), or writes one token after the other (``step``) from a state of its own. When
it writes, several hypotheses (beams) of a sentence share its memory: N sentences, K beams each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.models.seq2seq_settings import PAD, Seq2SeqArchitecture
from nlpkit.nn.layers import Embedding, Linear
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.smoothing import divergence, smoothed_cross_entropy

Head = Callable[[Tensor], Tensor]


class Memory:
    """What the decoder looks at: tensors whose first dimension is the sentence."""

    def __init__(self, inside: Tensor, parts: dict[str, Tensor]) -> None:
        self.inside = inside  # (N, S), true for tokens
        self.parts = parts

    def __len__(self) -> int:
        return len(self.inside)

    def select(self, rows: Tensor) -> Memory:
        """The memory of some of the sentences."""
        return Memory(self.inside[rows], {name: part[rows] for name, part in self.parts.items()})


class DecoderState:
    """What a decoder remembers of the N x K hypotheses it is writing."""

    def select(self, rows: Tensor) -> None:
        """Go on with these hypotheses (R,), some of them perhaps several times."""
        raise NotImplementedError


class EncoderDecoder(nn.Module):
    """Tables of both sides, the head and the loss."""

    def __init__(self, settings: Seq2SeqArchitecture) -> None:
        super().__init__()
        self.settings = settings
        self.target_table = Embedding(settings.target_vocab, settings.dim)
        self.source_table = (
            self.target_table if settings.joint else Embedding(settings.source_vocab, settings.dim)
        )
        self.head = None if settings.tied else Linear(settings.dim, settings.written, bias=False)
        self.head_bias = (
            nn.Parameter(torch.zeros(settings.written)) if settings.output_bias else None
        )
        if settings.outputs:
            # which ids of the target the head scores: in a joint vocabulary many are the source's
            with torch.device("cpu"):  # on no device this would load half of torch
                self.register_buffer("written_ids", torch.arange(settings.outputs))
        else:
            self.written_ids = None
        self.int8_head: Head | None = None
        self.compiled: Any = None  # a ``CompiledDecoder``, of a model that is only used
        self.dropout = nn.Dropout(settings.dropout)

    written_ids: Tensor | None

    def each(self) -> Iterator[EncoderDecoder]:
        """The models that decide together: this one alone."""
        yield self

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the first weights."""
        std = self.settings.table_std
        self.target_table.initialize(generator, std)
        if not self.settings.joint:
            self.source_table.initialize(generator, std)
        if self.head is not None:
            self.head.initialize(generator, std)

    def matrices(self) -> Stacks:
        """The hidden matrices, which Muon can train; AdamW trains all others."""
        raise NotImplementedError

    def encode(self, source: Tensor, inside: Tensor) -> Memory:
        """Read sources (N, S); ``inside`` is true for tokens."""
        raise NotImplementedError

    def hidden(self, target: Tensor, memory: Memory) -> Tensor:
        """What the head scores (B, T, C), for each prefix of the whole target (B, T) at once."""
        raise NotImplementedError

    def alignment(self, target: Tensor, memory: Memory) -> Tensor:
        """What each token to come looks at, (B, T, S): of the last layer, the mean of its heads."""
        raise NotImplementedError

    def start(self, memory: Memory, beams: int, longest: int) -> Any:
        """The state before the first token, with room for ``longest`` of them."""
        raise NotImplementedError

    def step(
        self, ids: Tensor, state: Any, memory: Memory, look: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """One more token (N, K): what the head scores (N, K, C), and if asked for what it looks at
        (N, K, S)."""
        raise NotImplementedError

    def head_weights(self) -> Tensor:
        """Rows of the head (V, C)."""
        if isinstance(self.head, Linear):
            return self.head.weight
        table = self.target_table.weight
        return table if self.written_ids is None else table[self.written_ids]

    def logits(self, hidden: Tensor, head: Head | None = None) -> Tensor:
        """Scores of the ids that can be written (..., V); ``head`` is from ``make_head``."""
        if head is not None:
            return head(hidden)
        return nn.functional.linear(hidden, self.head_weights(), self.head_bias)

    def make_head(self) -> Head:
        """The head, its rows taken from the table once for many steps."""
        if self.compiled is not None:
            head: Head = self.compiled.head
            return head
        if self.int8_head is not None:
            return self.int8_head
        weights, bias = self.head_weights(), self.head_bias
        return lambda hidden: nn.functional.linear(hidden, weights, bias)

    def quantize(self) -> None:
        """Turn linear layers and the head into 8 bits; the model can then be used, not trained.

        What it makes of a sentence does not depend on the others of a batch.
        """
        raise NotImplementedError

    def label_table(self) -> Tensor:
        """For each id of the target, its place in the head (Vt,)."""
        size = self.settings.target_vocab
        places = torch.arange(size)
        if self.written_ids is not None:
            places.zero_()
            places[self.written_ids.cpu()] = torch.arange(len(self.written_ids))
        return places

    def forward(
        self,
        source: Tensor,  # (B, S)
        inside: Tensor,  # (B, S), true for tokens
        target: Tensor,  # (B, T): start, tokens
        labels: Tensor,  # (B, T): tokens, end; PAD is not counted
        places: Tensor,  # label_table()
        smoothing: float = 0.0,
        r_drop: float = 0.0,
    ) -> Tensor:
        """The mean negative log-likelihood of a target token, in nats.

        With R-Drop (Wu et al., 2021) each pair is read twice, with other units dropped, and that
        many times the divergence of the two answers is added.
        """
        if r_drop:
            twice = (torch.cat([part, part]) for part in (source, inside, target, labels))
            source, inside, target, labels = twice
        hidden = self.hidden(target, self.encode(source, inside))
        kept = labels != PAD
        logits = self.logits(hidden[kept])
        loss = smoothed_cross_entropy(logits, places[labels[kept]], smoothing)
        return loss + r_drop * divergence(*logits.chunk(2)) if r_drop else loss

    def count_parameters(self) -> int:
        """Numbers that training changes; tied ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())


def build_seq2seq(settings: Seq2SeqArchitecture, seed: int = 1) -> EncoderDecoder:
    """A new model with random weights.

    >>> small = Seq2SeqArchitecture(model="gru", source_vocab=9, target_vocab=7, dim=8)
    >>> model = build_seq2seq(small)
    >>> memory = model.encode(torch.tensor([[5, 6]]), torch.tensor([[True, True]]))
    >>> model.hidden(torch.tensor([[1, 4, 5]]), memory).shape
    torch.Size([1, 3, 8])
    """
    from nlpkit.device import seeded

    with seeded(seed, 0, torch.device("cpu")):
        model = empty_seq2seq(settings)
    model.initialize(torch.Generator().manual_seed(seed))
    return model


def empty_seq2seq(settings: Seq2SeqArchitecture) -> EncoderDecoder:
    """A model whose weights are about to be read."""
    from nlpkit.models.seq2seq_ensemble import EnsembleSeq2Seq
    from nlpkit.models.seq2seq_recurrent import RecurrentSeq2Seq
    from nlpkit.models.seq2seq_transformer import TransformerSeq2Seq

    if settings.members > 1:
        return EnsembleSeq2Seq(settings)
    kind = TransformerSeq2Seq if settings.model == "transformer" else RecurrentSeq2Seq
    return kind(settings)
