"""Training a language model on a stream of ids, alone or as one of several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.models.base import LanguageModel
from nlpkit.models.build import build_model, check_training, make_optimizers
from nlpkit.models.gpt import GPT
from nlpkit.models.kneser_ney import kneser_ney
from nlpkit.models.kneser_ney_counts import Scratch
from nlpkit.models.ngram_text import NGramText
from nlpkit.models.recurrent import Recurrent
from nlpkit.models.settings import Recipe
from nlpkit.tasks.lm.gradients import gradient_flow
from nlpkit.tasks.lm.lanes import CarriedState, lane_loss
from nlpkit.tasks.lm.score import stream_losses
from nlpkit.tasks.lm.settings import ResolvedGpt, ResolvedLm
from nlpkit.tasks.lm.stream import LineBatches, TargetBatches, windows
from nlpkit.text.codec import Codec
from nlpkit.training.batches import Lanes, RandomWindows
from nlpkit.training.distributed import Processes, Synchronized
from nlpkit.training.loop import Trainer

_FLOW_LENGTH = 256  # tokens over which gradients are followed, for the metrics
_NO_MARK = "subwords without an end-of-text mark have nothing to tell texts apart by"
_EVAL_TOKENS = 8192  # of the validation part, at each evaluation but the last


def recipe_of(model: LanguageModel, given: Recipe | None) -> Recipe:
    """The recipe of a model to train further; another one that is asked for is refused."""
    recipe = model.settings.recipe
    if given not in (None, recipe):
        raise NlpkitError(
            f"a model of recipe {recipe} cannot be trained further with recipe {given}",
            hint=f"recipe {recipe}, or none: a model brings its own",
        )
    return recipe


def freeze_layers(model: LanguageModel, count: int) -> None:
    """Keep embeddings and the lowest ``count`` blocks as they are."""
    if not isinstance(model, GPT):
        if count:
            raise NlpkitError("`freeze` is for GPT models", hint="leave it out")
        return
    if count > len(model.blocks):
        raise NlpkitError(f"`freeze` {count}: the model has {len(model.blocks)} layers")
    if count:
        for part in (model.embedding, model.previous, model.position, *model.blocks[:count]):
            if part is not None:
                part.requires_grad_(False)


def prepare_training(
    model: LanguageModel,
    train: np.ndarray,
    validation: np.ndarray,
    settings: ResolvedGpt,
    processes: Processes | None = None,
    mark: int | None = None,
) -> Trainer:
    """A trainer for a model that is on its device. Without ``validation`` the last weights stay.

    With a ``mark`` it stands between texts that are independent of each other.

    >>> from nlpkit.tasks.lm.settings import GptSettings
    >>> ids = np.random.default_rng(1).integers(0, 9, 500)
    >>> settings = GptSettings(layers=1, dim=16, block_size=8, max_iters=3).resolve()
    >>> model = build_model(settings.architecture(9))
    >>> [progress.step for progress in prepare_training(model, ids, ids, settings).fit()]
    [1, 2, 3]
    """
    processes = processes or Processes()

    def evaluate() -> float:
        trainer.extras = _flow(model, validation)
        return heldout_loss(model, validation, at_most=_EVAL_TOKENS, mark=mark)

    data = _data(model, train, settings, processes, mark)
    measured = evaluate if len(validation) else None
    trainer = make_trainer(model, data, settings, processes, measured)
    return trainer


def make_trainer(
    model: LanguageModel,
    data: TargetBatches | RandomWindows | Lanes,
    settings: ResolvedGpt,
    processes: Processes,
    evaluate: Callable[[], float] | None,
) -> Trainer:
    """A trainer for a model that is on its device, whatever its batches are."""
    freeze_layers(model, settings.freeze)
    optimizers = make_optimizers(
        model,
        optimizer=settings.optimizer,
        lr=settings.lr,
        muon_lr=settings.muon_lr,
        weight_decay=settings.weight_decay,
    )
    trained: Any = torch.compile(model) if settings.compile else model
    trained = processes.wrap(trained)
    kept: nn.Module = model
    if isinstance(data, Lanes):
        assert isinstance(model, Recurrent)
        kept = CarriedState(model, settings.batch_size)
    return Trainer(
        Synchronized(kept, trained) if processes.count > 1 else kept,
        optimizers,
        _batch_loss(trained, kept, data, processes),
        settings.loop(),
        evaluate=evaluate,
        clock=processes.clock(next(model.parameters()).device),
    )


def _data(
    model: LanguageModel,
    train: np.ndarray,
    settings: ResolvedGpt,
    processes: Processes,
    mark: int | None,
) -> RandomWindows | Lanes | LineBatches:
    """Lines where texts are independent, lanes for a state that is carried on, else windows."""
    sizes = {"batch_size": settings.batch_size, "block_size": model.settings.block_size}
    if mark is not None:
        return LineBatches(train, mark, seed=settings.seed, **sizes)
    if isinstance(model, Recurrent):
        share = len(train) // processes.count
        own = train[processes.rank * share : (processes.rank + 1) * share]
        return Lanes(own, seed=settings.seed, **sizes)
    return RandomWindows(train, seed=settings.seed, **sizes)


def _batch_loss(
    trained: Any,
    kept: nn.Module,
    data: TargetBatches | RandomWindows | Lanes,
    processes: Processes,
) -> Callable[[int], tuple[Tensor, int]]:
    device = next(kept.parameters()).device

    def batch_loss(number: int) -> tuple[Tensor, int]:
        if isinstance(data, Lanes):
            assert isinstance(kept, CarriedState)
            idx, targets = data[number]
            fresh = data.is_fresh(number)
            loss = kept.loss(trained, idx.to(device), targets.to(device), fresh=fresh)
        else:
            # the processes take turns, so that together they see what one would with more batches
            idx, targets = data[number * processes.count + processes.rank]
            _, loss = trained(idx.to(device), targets.to(device))
        return loss, idx.numel() * processes.count

    return batch_loss


def _flow(model: LanguageModel, ids: np.ndarray) -> dict[str, Any]:
    """Gradient norms of a few windows of held-out text, for the metrics."""
    length = min(model.settings.block_size, len(ids) - 1, _FLOW_LENGTH)
    if length < 2:
        return {}
    places = np.linspace(0, len(ids) - 1 - length, 4).astype(int)[:, None]
    rows = torch.from_numpy(ids[places + np.arange(length + 1)].astype(np.int64))
    rows = rows.to(next(model.parameters()).device)
    return gradient_flow(model, rows[:, :-1], rows[:, 1:])


@torch.no_grad()
def heldout_loss(
    model: LanguageModel, ids: np.ndarray, *, at_most: int | None = None, mark: int | None = None
) -> float:
    """Mean negative log-likelihood in nats of held-out text, or of about ``at_most`` tokens."""
    if mark is not None or isinstance(model, NGramText):
        chosen = ids if at_most is None else ids[: max(at_most, 2)]
        begun = ids[0] if mark is None else mark
        pairs = stream_losses(model, [chosen], int(begun), mark=mark)
        sums = [(float(losses.sum(dtype=np.float64)), len(losses)) for _, losses in pairs]
        return sum(nats for nats, _ in sums) / max(1, sum(count for _, count in sums))
    if isinstance(model, Recurrent):
        return lane_loss(model, ids, at_most=at_most)
    block = model.settings.block_size
    return stream_loss(model, ids, at_most=None if at_most is None else max(1, at_most // block))


@torch.no_grad()
def stream_loss(
    model: LanguageModel, ids: np.ndarray, *, batch_size: int = 32, at_most: int | None = None
) -> float:
    """Mean negative log-likelihood in nats, in windows of the block size that do not overlap."""
    device = next(model.parameters()).device
    total = count = 0.0
    for idx, targets in windows(ids, model.settings.block_size, batch_size, at_most):
        _, loss = model(idx.to(device), targets.to(device))
        assert loss is not None
        total += loss.item() * targets.numel()
        count += targets.numel()
    return total / count


def count_ngrams(
    train: np.ndarray,
    validation: np.ndarray,
    codec: Codec,
    settings: ResolvedLm,
    folder: str | None = None,
) -> NGramText:
    """Count the n-grams of a text and smooth them; temporary files go to ``folder``."""
    mark = -1 if settings.unit == "stream" else codec.first_id
    if mark is None:
        raise NlpkitError(_NO_MARK, hint="`unit` stream")
    size, scratch = codec.n_ids, Scratch(folder, settings.memory << 20)
    ids = _with_mark(train, mark)
    if settings.smoothing == "interpolation":
        from nlpkit.models.interpolation import interpolated

        heldout = np.ascontiguousarray(validation, np.int32)
        trie = interpolated(ids, heldout, settings.order, size, mark, scratch)
    else:
        trie = kneser_ney(ids, settings.order, size, mark, scratch)
    return NGramText(trie)


def _with_mark(ids: np.ndarray, mark: int) -> np.ndarray:
    """Ids as n-grams are counted in: where sentences count, a mark before the first and last."""
    if mark < 0:
        return np.ascontiguousarray(ids, np.int32)
    before = [] if len(ids) and ids[0] == mark else [mark]
    after = [] if len(ids) and ids[-1] == mark else [mark]
    return np.concatenate([before, ids, after]).astype(np.int32)


def new_model(
    settings: ResolvedGpt, vocab_size: int, device: torch.device | None = None
) -> LanguageModel:
    """A GPT with random weights, if there is memory to train it on the ``device``."""
    architecture = settings.architecture(vocab_size)
    check_training(
        architecture, settings.batch_size, architecture.block_size, device or torch.device("cpu")
    )
    return build_model(architecture, settings.seed)
