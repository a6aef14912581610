"""An encoder-decoder with its codecs: text in, text out. Predict, score, align."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.generate.beam import BeamSettings, Hypothesis, beam_search
from nlpkit.generate.constraints import Constraints
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.generate.targets import sample_targets
from nlpkit.models.joint_ngram import JointNgram
from nlpkit.models.seq2seq import EncoderDecoder, Memory
from nlpkit.models.seq2seq_settings import END, PAD, UNKNOWN, Seq2SeqArchitecture
from nlpkit.openmp import sharing_cores
from nlpkit.tasks.translate.codecs import SideCodec
from nlpkit.tasks.translate.data import Pair
from nlpkit.tasks.translate.loops import cut_loops
from nlpkit.tasks.translate.pick import SYMBOLS_AT_MOST
from nlpkit.tasks.translate.rerank import rerank
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.terms import Term, encode_written, find_terms
from nlpkit.tasks.translate.weights import read_seq2seq, write_seq2seq
from nlpkit.text.characters import Characters
from nlpkit.text.codec import save_codec
from nlpkit.text.subwords import Subwords
from nlpkit.training.batches import Ragged, plan

_SPARE = 10  # tokens that an answer may have beyond its share
_LONGER = 8  # times the longest of the training data: what a recurrent model reads at most
_LONGEST_TOKEN = 1_000  # characters, on an average of a text that is cut
_MUCH = 1_000  # tokens to read from which on loading the compiled step pays
_VERY_MUCH = 50_000  # and compiling it
_NARROW = 32  # a narrower model has no 8-bit weights, and little to gain


@dataclass
class Answer:
    """What a model made of a source."""

    text: str
    score: float  # the log-probability, divided by the length penalty, with what else ranks
    log_probability: float
    ids: list[int] = field(repr=False)
    attention: Tensor | None = field(default=None, repr=False)  # (T, S)
    cut: int = 0  # words and parts of words that were cut, being repeated over and over
    complete: bool = True  # whether all terms are in it


class PairScore(NamedTuple):
    """How likely a target is, given its source."""

    log_probability: float
    tokens: int  # the end counts


class Translator(modeldir.Model):
    """A model and its codecs.

    >>> Translator.load("de.model").translate(["Good morning."])  # doctest: +SKIP
    ['Guten Morgen.']
    """

    def __init__(
        self,
        model: EncoderDecoder,
        source: SideCodec,
        target: SideCodec,
        config: modeldir.ModelConfig | None = None,
        joint: JointNgram | None = None,
    ) -> None:
        self.model, self.source, self.target, self.joint = model, source, target, joint
        self.config = config or modeldir.ModelConfig(
            kind=registry.SEQ2SEQ, settings={"architecture": model.settings.to_dict()}
        )
        self.too_long = 0  # sources that had to be cut
        self._read = 0  # tokens so far

    def __repr__(self) -> str:
        shape = self.model.settings
        what = shape.model if shape.model == "transformer" else f"{shape.model}, {shape.attention}"
        return (
            f"<Translator: {what}, width {shape.dim}, {self.model.count_parameters():,} parameters>"
        )

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        save_codec(self.source, folder, "source")
        if self.target is not self.source:
            save_codec(self.target, folder, "target")
        write_seq2seq(folder, self.model)
        if self.joint is not None:
            self.joint.write(folder)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> Translator:
        """Read a model folder."""
        folder = Path(modeldir.find_model(path))
        config = modeldir.load_config(folder, kind=registry.SEQ2SEQ)
        where = f"{folder / modeldir.CONFIG}: settings"
        schema.read(TranslateSettings, config.settings, where, others=True)
        shape = Seq2SeqArchitecture.from_dict(
            config.settings.get("architecture"), f"{where}.architecture"
        )
        source = SideCodec.read(folder / "source", n_ids=shape.padded(shape.source_vocab))
        target = source
        if not shape.joint or any(folder.glob("target.*")):
            target = SideCodec.read(folder / "target", n_ids=shape.padded(shape.target_vocab))
        for name, codec, size in (
            ("source", source, shape.source_vocab),
            ("target", target, shape.target_vocab),
        ):
            if len(codec) != size:
                raise NlpkitError(
                    f"{path}: the {name} side has {len(codec)} ids, the model {size}",
                    hint=schema.AGAIN,
                )
        model = read_seq2seq(folder, shape).to(device)
        return cls(model, source, target, config, JointNgram.read(folder, shape.target_vocab))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def work(self, tokens: int) -> int:
        """About how many multiply-adds it takes to read or write so many tokens."""
        return tokens * self.model.count_parameters()

    def quantize(self) -> None:
        """Turn weights into 8-bit integers; the model can then be used, not trained or saved."""
        if self.device.type != "cpu":
            raise NlpkitError("8-bit weights are for the CPU", hint="`device` cpu")
        self.model.quantize()
        self.model.compiled = None

    # --- use ------------------------------------------------------------------------------------

    def translate(self, texts: Sequence[str], **settings: object) -> list[str]:
        """The best answer for each text; settings are those of ``PredictSettings``."""
        chosen = PredictSettings(**settings)  # type: ignore[arg-type]
        return [answers[0].text for answers in self.predict(texts, chosen)]

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids that the encoder reads, with the end; what is too long is cut."""
        rows = [[*self.source.encode(self.readable(text)), END] for text in texts]
        longest = self.longest
        self.too_long += sum(len(row) > longest for row in rows)
        return [row if len(row) <= longest else [*row[: longest - 1], END] for row in rows]

    def readable(self, text: str) -> str:
        """A source without what is beyond the longest by far: millions of tokens are not made."""
        return text[: _LONGEST_TOKEN * self.longest]

    @property
    def longest(self) -> int:
        """The most tokens that are read or written.

        Recurrent models could go on, but time goes by the square of the length.
        """
        return self.model.settings.max_length * (1 if self._is_bounded else _LONGER)

    @property
    def _is_bounded(self) -> bool:
        """Whether there is nothing learned for places beyond the longest of the training data."""
        shape = self.model.settings
        return shape.model == "transformer" or shape.attention == "location"

    def encode_batch(self, rows: Sequence[Sequence[int]]) -> Memory:
        """What the decoder looks at, for some sources."""
        idx, inside = Ragged(rows).pad(range(len(rows)), PAD).tensors(self.device)
        return self.model.encode(idx, inside)

    @torch.inference_mode()
    def predict(
        self,
        texts: Sequence[str],
        settings: PredictSettings | None = None,
        *,
        terms: Sequence[Term] = (),
        first: int = 0,  # the number of the first text, for sampling
        look: bool = False,
    ) -> list[list[Answer]]:
        """For each text its ``nbest`` answers, the best first. What is empty has an empty answer.

        The answers do not depend on ``batch_size``, nor on ``nbest``.
        """
        settings = settings or PredictSettings()
        if settings.nbest > settings.beams and not settings.sampling:
            raise NlpkitError(
                f"`nbest` {settings.nbest} is more than `beams` {settings.beams}",
                hint=f"`beams` {settings.nbest}",
            )
        shape = self.model.settings
        if shape.model != "transformer" and shape.attention == "none":
            asked = [name for name in ("coverage", "copy_unknown") if getattr(settings, name)]
            if asked:
                raise NlpkitError(f"`{asked[0]}` needs attention, and this model has none")
        self.model.eval()
        rows = self.encode_sources(texts)
        self._make_fast(sum(map(len, rows)))
        full = [number for number, row in enumerate(rows) if len(row) > 1]  # more than the end
        answers: list[list[Answer]] = [[Answer("", 0.0, 0.0, [])] for _ in rows]
        lengths = [len(rows[number]) for number in full]
        for group in sharing_cores(plan(lengths, tokens=1 << 40, most_rows=settings.batch_size)):
            numbers = [full[place] for place in group]
            found = self._search(
                [rows[n] for n in numbers],
                [texts[n] for n in numbers],
                [first + n for n in numbers],
                settings,
                terms,
                look,
            )
            for number, hypotheses in zip(numbers, found, strict=True):
                answers[number] = [
                    self._answer(texts[number], one, settings)
                    for one in hypotheses[: settings.nbest]
                ]
        return answers

    def _make_fast(self, tokens: int) -> None:
        """Once there is much to do, a Transformer on a CPU writes by its compiled search.

        Not one that is being trained: the step has its own copy of the weights.
        """
        self._read += tokens
        shape = self.model.settings
        if self._read < _MUCH or self.model.compiled is not None or self.device.type != "cpu":
            return
        if any(parameter.requires_grad for parameter in self.model.parameters()):
            return
        if shape.model == "transformer" and shape.dim >= _NARROW:
            from nlpkit.kernels.compiling import ENABLED, is_compiled
            from nlpkit.kernels.search import search

            if ENABLED and (self._read >= _VERY_MUCH or is_compiled(search)):
                self.compile()

    def compile(self) -> None:
        """Let a Transformer that will only be used write by its compiled step."""
        from nlpkit.models.seq2seq_cpu import CompiledDecoder
        from nlpkit.models.seq2seq_transformer import TransformerSeq2Seq

        if isinstance(self.model, TransformerSeq2Seq):
            self.model.compiled = CompiledDecoder(self.model)

    def _search(
        self,
        rows: list[list[int]],
        texts: list[str],
        numbers: list[int],
        settings: PredictSettings,
        terms: Sequence[Term],
        look: bool,
    ) -> list[list[Hypothesis]]:
        prefix = self._encode_written(settings.prefix) if settings.prefix else []
        limits = self._limits(rows, settings.max_length, len(prefix))
        memory = self.encode_batch(rows)
        look = look or settings.copy_unknown
        if settings.sampling:
            sampling = SamplingSettings(
                temperature=settings.temperature, top_k=settings.top_k, top_p=settings.top_p
            )
            return sample_targets(
                self.model,
                memory,
                sampling,
                limits,
                seeds=[(settings.seed * 1_000_003 + n) % 2**63 for n in numbers],
                count=settings.nbest,
                prefix=prefix,
            )
        wanted = [self._constraints(text, terms) for text in texts]
        most = max((sum(map(len, one.terms)) for one in wanted if one is not None), default=0)
        beam = BeamSettings(
            # every number of tokens of terms needs a beam of its own
            beams=max(settings.beams, most + 1 if most else 1),
            length_penalty=self.length_penalty(settings),
            coverage=settings.coverage,
            no_repeat_ngram=settings.no_repeat_ngram,
            unknown=settings.copy_unknown,
            look=look,
        )
        found = beam_search(self.model, memory, beam, limits, prefix=prefix, constraints=wanted)
        if self.joint is None or settings.beams == 1:
            return found
        return rerank(self.joint, [row[:-1] for row in rows], found, beam.length_penalty)

    def length_penalty(self, settings: PredictSettings) -> float:
        """What was given; characters and phones want the likeliest answer, words a longer one."""
        if settings.length_penalty is not None:
            return settings.length_penalty
        words = isinstance(self.target.tokens, Subwords) or len(self.target) > SYMBOLS_AT_MOST
        return 1.0 if words else 0.0

    def _limits(self, rows: list[list[int]], share: float, prefix: int) -> list[int]:
        """Tokens that each answer may have: in proportion to its source, but no more than the
        longest targets of the training data or, if that is more, its source has."""
        most = self.model.settings.max_length
        limits = []
        for row in rows:
            bound = most if self._is_bounded else max(most, len(row) + _SPARE)
            limits.append(min(int(share * len(row)) + _SPARE, bound) + prefix)
        return [min(limit, self.longest) for limit in limits]

    def _encode_written(self, text: str) -> list[int]:
        written = self.model.written_ids
        known = None if written is None else set(written.tolist())
        return encode_written(text, self.target, known)

    def _constraints(self, text: str, terms: Sequence[Term]) -> Constraints | None:
        """The terms of a source, as places in the head."""
        places = None if self.model.written_ids is None else self.model.label_table()
        phrases = []
        for term in find_terms(text, terms):
            space = " " if isinstance(self.target.tokens, Subwords) else ""
            ids = self._encode_written(space + term.target)
            phrases.append(tuple(ids if places is None else places[torch.tensor(ids)].tolist()))
        return Constraints(tuple(phrases)) if phrases else None

    def _answer(self, source: str, found: Hypothesis, settings: PredictSettings) -> Answer:
        unknown: list[str] = []
        if settings.copy_unknown and found.attention is not None:
            tokens = [token for token, _ in self.source.split(self.readable(source))]
            for place, index in enumerate(found.ids):
                if index == UNKNOWN and tokens:
                    looked = found.attention[place, : len(tokens)]  # not at the end mark
                    unknown.append(tokens[int(looked.argmax())])
        text, cut = self.target.fill(found.ids, unknown).strip(), 0
        if not settings.keep_loops:
            said = self.readable(source).partition("\t")[0]
            # of a model of characters, "www" says something three times
            said = " ".join(said) if isinstance(self.source.tokens, Characters) else said
            text, cut = cut_loops(said, text)
        return Answer(
            text,
            found.score,
            found.log_probability,
            found.ids,
            found.attention,
            cut,
            found.complete,
        )

    def target_rows(self, targets: Sequence[str]) -> list[list[int]]:
        """Ids of targets, with what they begin after and their end."""
        return [[self.model.settings.start, *self.target.encode(text), END] for text in targets]

    @torch.inference_mode()
    def score(self, pairs: Sequence[Pair], batch_tokens: int = 8192) -> Iterator[PairScore]:
        """The log-probability of each target, in order."""
        self.model.eval()
        sources = self.encode_sources([pair.source for pair in pairs])
        targets = self.target_rows([self.readable(pair.target) for pair in pairs])
        targets = [row[: self.longest + 1] for row in targets]
        found: list[PairScore] = [PairScore(0.0, 0)] * len(pairs)
        sizes = [[len(s), len(t)] for s, t in zip(sources, targets, strict=True)]
        places = self.model.label_table().to(self.device)
        for group in plan(sizes, tokens=batch_tokens) if pairs else ():
            memory = self.encode_batch([sources[n] for n in group])
            idx, _ = Ragged([targets[n] for n in group]).pad(range(len(group)), PAD).tensors()
            idx = idx.to(self.device)
            inside = torch.arange(idx.size(1) - 1, device=self.device) < torch.tensor(
                [len(targets[n]) - 1 for n in group], device=self.device
            ).unsqueeze(1)
            chances = self.model.logits(self.model.hidden(idx[:, :-1], memory)).log_softmax(-1)
            labels = places[idx[:, 1:]]
            each = chances.gather(2, labels[:, :, None])[:, :, 0] * inside  # (B, T)
            for number, total, count in zip(
                group, each.sum(dim=1).tolist(), inside.sum(dim=1).tolist(), strict=True
            ):
                found[number] = PairScore(total, count)
        yield from found

    @torch.inference_mode()
    def align(self, source: str, target: str) -> tuple[list[str], list[str], Tensor]:
        """Tokens of both sides with their ends, and what each target token looks at (T, S)."""
        self.model.eval()
        row, [goal] = self.encode_sources([source]), self.target_rows([target])
        weights = self.model.alignment(
            torch.tensor([goal[:-1]], device=self.device), self.encode_batch(row)
        )
        return (
            [self.source.show(index) for index in row[0]],
            [self.target.show(index) for index in goal[1:]],
            weights[0].float().cpu(),
        )
