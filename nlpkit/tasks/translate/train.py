"""Training an encoder-decoder on pairs, alone or as one of several processes."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit import modeldir, registry
from nlpkit import settings as limits
from nlpkit.device import check_training_memory
from nlpkit.errors import NlpkitError
from nlpkit.models.build import make_optimizers
from nlpkit.models.joint_ngram import JointNgram
from nlpkit.models.seq2seq import EncoderDecoder, build_seq2seq
from nlpkit.models.seq2seq_settings import END, PAD, UNKNOWN, Kind, Seq2SeqArchitecture
from nlpkit.tasks.translate.codecs import SideCodec, make_codec
from nlpkit.tasks.translate.data import Pair, without_empty
from nlpkit.tasks.translate.model import Translator
from nlpkit.tasks.translate.pick import (
    FEW,
    Picked,
    candidates,
    is_symbols,
    measure_speed,
    pick_kind,
    pick_size,
)
from nlpkit.tasks.translate.rerank import choose_weight
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.start import embed_pairs
from nlpkit.training.averaging import Averaged
from nlpkit.training.batches import Batches
from nlpkit.training.distributed import Processes, Synchronized
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run

MUON_LR = 0.03
LR: dict[Kind, float] = {"lstm": 0.02, "gru": 0.02, "transformer": 0.005}  # of AdamW beside it
ADAMW_LR = 0.002  # of AdamW alone
_EPOCHS = 20
_MEASURED = 200  # pairs of the held-out part that are translated at each evaluation
_TUNED, _RARELY = 500, 50  # pairs that show what counts are worth: so many, or every 50th
_FEWEST = 100  # pairs that this takes


@dataclass(frozen=True)
class LeftOut:
    """Pairs that were not learned from."""

    empty: int
    long: int


class TranslateRun(Run):
    """Codecs, data, model and trainer of one run.

    >>> pairs = [Pair("one two", "un dos"), Pair("two one", "dos un")] * 4
    >>> settings = TranslateSettings(tokenizer="word", dim=16, max_iters=3, dtype="float32")
    >>> run = TranslateRun(pairs, settings)
    >>> [progress.step for progress in run.steps()]
    [1, 2, 3]
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        settings: TranslateSettings,
        *,
        dev: Sequence[Pair] = (),
        device: torch.device | None = None,
        processes: Processes | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.settings = limits.check(settings)
        self.processes: Processes = processes or Processes()
        self.device = device or torch.device("cpu")
        kept, empty = without_empty(pairs)
        self.dev = without_empty(dev, "held-out pair").pairs if dev else []
        self.source, self.target = _make_codecs(kept, settings)
        sources = [[*self.source.encode(pair.source), END] for pair in kept]
        targets = [[*self.target.encode(pair.target), END] for pair in kept]
        short = [
            max(len(one), len(other)) <= settings.max_length + 1
            for one, other in zip(sources, targets, strict=True)
        ]
        self.left_out = LeftOut(empty, short.count(False))
        self.sources = [row for row, fits in zip(sources, short, strict=True) if fits]
        self.targets = [row for row, fits in zip(targets, short, strict=True) if fits]
        if not self.sources:
            raise NlpkitError(
                f"all {len(kept):,} pairs are longer than `max_length` {settings.max_length}",
                hint="a larger `max_length`",
            )
        self.tokens = sum(map(len, self.targets))
        ids = len(self.source) + (0 if settings.joint else len(self.target))
        recurrent = ("lstm", "gru", "auto" if self.device.type == "cpu" else "")
        self.symbols = settings.model in recurrent and is_symbols(ids, self.tokens)
        self.batch_tokens = settings.pick_batch(self.tokens, self.symbols)
        self.tuning = self._hold_out([pair for pair, fits in zip(kept, short, strict=True) if fits])
        self.worth: tuple[float, float] | None = None  # of these right without counts, and with
        self.speed = 0.0  # multiply-adds a second, if it had to be measured
        self.picked = self._pick()
        self.model = self._make_model()
        self._hash = modeldir.data_hash(f"{p.source}\n{p.target}\n".encode() for p in kept)
        self._timer = clock
        self.trainer: Trainer = self._make_trainer(clock)

    # --- making ---------------------------------------------------------------------------------

    def _hold_out(self, pairs: list[Pair]) -> list[Pair]:
        """Pairs that nothing is learned from, if a joint n-gram model is to prove its worth."""
        asked = self.settings.joint_ngram
        few = len(pairs) < _FEWEST
        if asked == "no" or (asked == "auto" and (few or not self.symbols)):
            return []
        if few:
            raise NlpkitError(
                f"a joint n-gram model needs {_FEWEST} pairs, not {len(pairs)}",
                hint="`joint_ngram` no",
            )
        step = max(len(pairs) // _TUNED, min(_RARELY, len(pairs) // 10))
        self._every_row = self.sources, self.targets
        self.sources = [row for number, row in enumerate(self.sources) if number % step]
        self.targets = [row for number, row in enumerate(self.targets) if number % step]
        return pairs[::step]

    def _pick(self) -> Picked:
        """Architecture and size, by data, time and speed."""
        settings = self.settings
        kind: Kind = "lstm" if settings.model == "auto" else settings.model
        seconds, epochs = settings.max_time, settings.epochs or _EPOCHS
        asked = settings.model != "auto" and settings.dim is not None
        if seconds is None or asked or self.processes.count > 1 or self.tokens < FEW:
            known: dict[str, Any] = {"epochs": epochs, "speed": 0.0, "seconds": 0.0}
            return pick_size(kind, self.tokens, 0, **known, symbols=self.symbols)
        vocab = len({index for row in self.targets for index in row})
        if not self.speed:
            source, target = sum(map(len, self.sources)), self.tokens
            lengths = max(1, source // len(self.sources)), max(1, target // len(self.targets))
            rows = max(1, self.batch_tokens // max(lengths))
            float32 = settings.dtype == "float32"
            self.speed = measure_speed(vocab, rows, lengths, self.device, float32=float32)
        known = {"epochs": None, "speed": self.speed, "seconds": seconds}
        if settings.model == "auto" and settings.attention is None and not self.symbols:
            small = pick_size("transformer", self.tokens, vocab, **known)
            kind = pick_kind(self.tokens, self.device.type, small)
        return pick_size(kind, self.tokens, vocab, **known, symbols=self.symbols)

    def load_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Go on with the model that was picked then: now the machine may be faster or slower."""
        if modeldir.is_model(path):
            run = modeldir.load_config(path, kind=modeldir.CHECKPOINT).settings.get("run")
            before = run.get("picked") if isinstance(run, dict) else None
            every = candidates(self.tokens, self.symbols)
            found = [one for one in every if list(one[:4]) == before]
            if found and self.speed:
                self.picked = found[0]
                self.model = self._make_model()
                self.trainer = self._make_trainer(self._timer)
        super().load_checkpoint(path)

    def _make_model(self) -> EncoderDecoder:
        settings = self.settings
        written = sorted({END, UNKNOWN, *(index for row in self.targets for index in row)})
        # in a joint vocabulary what only sources have is never written
        outputs = len(written) if settings.joint and len(written) < len(self.target) else 0
        shape = settings.architecture(self.picked, len(self.source), len(self.target), outputs)
        if settings.r_drop and not shape.dropout:
            raise NlpkitError("`r_drop` compares answers under dropout", hint="`dropout` 0.2")
        read = self.batch_tokens * (2 if settings.r_drop else 1)
        check_training_memory(
            shape.count_parameters(),
            self.device,
            activations=read * (2 * shape.written + 20 * shape.dim * shape.layers),
            batch="batch_tokens",
        )
        model = build_seq2seq(shape, settings.seed)
        for member in model.each():
            if member.written_ids is not None:
                member.written_ids.copy_(torch.tensor(written))
            if settings.start == "pairs":
                self._start_from_pairs(member, shape)
                scored = written if shape.outputs else range(len(self.target))
                self._start_from_counts(member, scored)
        return model.to(self.device)

    def _start_from_pairs(self, model: EncoderDecoder, shape: Seq2SeqArchitecture) -> None:
        """Embeddings from counts of what stands in a pair together."""
        behind = 0 if shape.joint else shape.source_vocab  # where ids of the target begin
        rows = [
            [*source, *(index + behind for index in target)]
            for source, target in zip(self.sources, self.targets, strict=True)
        ]
        vectors = embed_pairs(rows, behind + shape.target_vocab, shape.dim, self.settings.seed)
        if vectors is None:
            return
        with torch.no_grad():
            table = torch.from_numpy(vectors) * (shape.table_std * shape.dim**0.5)
            if not shape.joint:
                model.source_table.weight.copy_(table[:behind])
            model.target_table.weight.copy_(table[behind:])

    def _start_from_counts(self, model: EncoderDecoder, written: Sequence[int]) -> None:
        """The head's bias from how often each id is written: nothing has to be learned of that."""
        counts = Counter(index for row in self.targets for index in row)
        logs = torch.tensor([math.log(counts[index] + 1) for index in written])
        assert model.head_bias is not None
        model.head_bias.data.copy_(logs - logs.mean())

    def _make_trainer(self, clock: Callable[[], float] | None) -> Trainer:
        settings, processes, model = self.settings, self.processes, self.model
        begin = model.settings.start
        batches = Batches(
            [[begin, *row] for row in self.targets],
            self.sources,
            tokens=self.batch_tokens,
            seed=settings.seed,
            fill=PAD,
        )
        self.per_epoch = max(1, batches.per_epoch // (processes.count * settings.grad_accum))
        optimizer = settings.optimizer or ("adamw" if self.symbols else "muon")
        alone = optimizer == "adamw" and self.picked.model != "transformer"
        lr = ADAMW_LR if alone else LR[self.picked.model]
        optimizers = make_optimizers(
            model,
            optimizer=optimizer,
            lr=lr if settings.lr is None else settings.lr,
            muon_lr=MUON_LR,
            weight_decay=settings.weight_decay or 0.0,
        )
        self.averaged = Averaged(model) if settings.average else None
        wrapped = processes.wrap(model)
        trained: nn.Module = self.averaged or model
        if processes.count > 1:
            trained = Synchronized(trained, wrapped)
        places = model.label_table().to(self.device)

        def batch_loss(number: int) -> tuple[Tensor, int]:
            if self.averaged is not None and self.trainer.fraction > 1 - settings.average:
                self.averaged.update()  # the weights that the step before has left
            # the processes take turns, so that together they see what one would
            columns = batches[number * processes.count + processes.rank].columns
            target, inside = columns[0].tensors(self.device)
            source, source_inside = columns[1].tensors(self.device)
            labels = target[:, 1:].masked_fill(~inside[:, 1:], PAD)
            regularized = settings.smoothing, settings.r_drop
            loss = wrapped(source, source_inside, target[:, :-1], labels, places, *regularized)
            return loss, int(inside[:, 1:].sum()) * processes.count

        return Trainer(
            trained,
            optimizers,
            batch_loss,
            settings.loop((settings.epochs or _EPOCHS) * self.per_epoch),
            evaluate=self.measure if self.dev else None,
            clock=clock or processes.clock(self.device),
        )

    # --- measuring ------------------------------------------------------------------------------

    def translator(self) -> Translator:
        """The model as it is now, ready to be used."""
        return Translator(self.model, self.source, self.target)

    def measure(self) -> float:
        """What is to be small on the held-out pairs: their loss, or the share of what is wrong."""
        translator = self.translator()
        if self.settings.metric == "loss":
            return heldout_loss(translator, self.dev)
        from nlpkit.metrics.text import bleu, exact_matches

        some = self.dev[:_MEASURED]
        found = translator.predict([pair.source for pair in some], PredictSettings(beams=1))
        answers = [answer[0].text for answer in found]
        targets = [pair.target for pair in some]
        if self.settings.metric == "exact":
            return 1 - sum(exact_matches(answers, targets)) / len(some)
        return -bleu(answers, targets).score

    # --- the end --------------------------------------------------------------------------------

    def common_settings(self) -> dict[str, Any]:
        """What a resumed run must have in common with the first one."""
        picked = list(self.picked[:4])
        return {**vars(self.settings), "processes": self.processes.count, "picked": picked}

    def data_hash(self) -> str:
        """A fingerprint of the pairs."""
        return self._hash

    def finish(self) -> Translator:
        """The best weights, or the mean of the last ones where that is better."""
        self._means = [] if self.averaged is None else self.averaged.means()
        found: Translator = super().finish()
        return found

    def result(self) -> Translator:
        """The model with its story; the best weights are in it."""
        best = self.measure() if self.dev else None
        if self.averaged is not None and self._means:
            before = {name: value.clone() for name, value in self.model.state_dict().items()}
            self.averaged.adopt(self._means)
            mean = self.measure() if self.dev else None
            if mean is not None and best is not None and mean > best:
                self.model.load_state_dict(before)
            else:
                best = mean
        return self._described(best, self._learn_joint())

    def unfinished(self) -> Translator:
        """The model as it is, its held-out pairs not measured."""
        return self._described(None)

    def _score(self, measured: float) -> float:
        """The loss, BLEU, or share of exact matches behind what ``measure`` gave."""
        return {"loss": measured, "bleu": -measured, "exact": 1 - measured}[self.settings.metric]

    def show_heldout(self, measured: float) -> str:
        """A loss, BLEU, or the share of answers that are exact."""
        score = self._score(measured)
        shown = {"loss": f"{score:.4f}", "bleu": f"BLEU {score:.2f}", "exact": f"{score:.1%} exact"}
        return shown[self.settings.metric]

    def _learn_joint(self) -> JointNgram | None:
        """The joint n-gram model of all pairs, if one of the others helps with held-out ones."""
        if not self.tuning:
            return None
        joint = self._count(self.sources, self.targets)
        if joint is not None:
            self.worth = choose_weight(joint, self.translator(), self.tuning)
        if joint is None or not joint.weight:
            return None
        whole = self._count(*self._every_row)
        if whole is not None:
            whole.weight = joint.weight
        return whole

    def _count(self, *sides: list[list[int]]) -> JointNgram | None:
        sources, targets = ([row[:-1] for row in rows] for rows in sides)
        return JointNgram.train(sources, targets, len(self.target))

    def _described(self, measured: float | None, joint: JointNgram | None = None) -> Translator:
        translator = self.translator()
        self.model.eval()
        translator.joint = joint
        recorded = {name: value for name, value in vars(self.settings).items() if value is not None}
        translator.config = modeldir.ModelConfig(
            kind=registry.SEQ2SEQ,
            settings={**recorded, "architecture": self.model.settings.to_dict()},
            seed=self.settings.seed,
            data_hash=self._hash,
            metrics={}
            if measured is None
            else {f"heldout_{self.settings.metric}": self._score(measured)},
        )
        self.outcome = "" if measured is None else f"held-out {self.show_heldout(measured)}; "
        if self.worth:
            alone, best = self.worth
            self.outcome += (
                f"with a joint n-gram model {best:.1%} of {len(self.tuning)} held-out pairs are "
                f"exact, {alone:.1%} without: it is {'used' if joint else 'left out'}; "
            )
        return translator


def _make_codecs(pairs: Sequence[Pair], settings: TranslateSettings) -> tuple[SideCodec, SideCodec]:
    source, target = settings.tokenizers
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if settings.joint:
        both = make_codec([*sources, *targets], source, settings.vocab_size)
        return both, both
    return (
        make_codec(sources, source, settings.vocab_size),
        make_codec(targets, target, settings.vocab_size),
    )


def heldout_loss(translator: Translator, pairs: Sequence[Pair]) -> float:
    """Mean negative log-likelihood of a target token, in nats."""
    scores = list(translator.score(pairs))
    return -sum(one.log_probability for one in scores) / max(1, sum(one.tokens for one in scores))
