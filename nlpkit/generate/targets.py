"""Drawing targets of an encoder-decoder with the shared sampler, instead of searching for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nlpkit.generate.beam import Hypothesis
from nlpkit.generate.sampling import SamplingSettings, draw_keys, sample_next
from nlpkit.models.seq2seq import EncoderDecoder, Memory
from nlpkit.models.seq2seq_settings import END, PAD, START, UNKNOWN


@torch.inference_mode()
def sample_targets(
    model: EncoderDecoder,
    memory: Memory,
    sampling: SamplingSettings,
    max_lengths: Sequence[int],
    *,
    seeds: Sequence[int],  # one for each sentence, so that draws do not depend on the batch
    count: int = 1,  # targets for each sentence
    prefix: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """For each sentence so many targets, the likeliest first."""
    device = memory.inside.device
    size = model.settings.written
    sampling.check_vocab(size)
    written = torch.arange(size) if model.written_ids is None else model.written_ids.cpu()
    banned = torch.isin(written, torch.tensor([PAD, START, UNKNOWN])).to(device)
    end = int((written == END).nonzero()[0])
    places = model.label_table()
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    state = model.start(memory, count, 1 + max(max_lengths))
    head = model.make_head()
    ids = torch.full((len(memory), count), model.settings.start, device=device)
    rows = [[Hypothesis(0.0, 0.0, []) for _ in range(count)] for _ in range(len(memory))]
    done = torch.zeros(len(memory), count, dtype=torch.bool)
    limits = torch.tensor(list(max_lengths))[:, None]
    for step in range(int(max(max_lengths))):
        hidden, _ = model.step(ids, state, memory)
        logits = model.logits(hidden, head).float().masked_fill(banned, -torch.inf)  # (N, K, V)
        if step == 0:
            logits[:, :, end] = -torch.inf
        chances = logits.log_softmax(dim=-1)
        keys = torch.cat([draw_keys(generator, count) for generator in generators])
        drawn = sample_next(logits.flatten(0, 1), sampling, keys).view(len(memory), count).cpu()
        if step < len(prefix):
            drawn = torch.full_like(drawn, int(places[prefix[step]]))
        drawn = torch.where(limits <= step + 1, end, drawn)
        _note(rows, done, drawn, chances.cpu(), written, end)
        done |= drawn == end
        if bool(done.all()):
            break
        ids = written[drawn].to(device)
    return [sorted(row, reverse=True) for row in rows]


def _note(
    rows: list[list[Hypothesis]],
    done: Tensor,
    drawn: Tensor,
    chances: Tensor,
    written: Tensor,
    end: int,
) -> None:
    """Write down what was drawn for targets that have not ended."""
    for row, line in enumerate(drawn.tolist()):
        for place, token in enumerate(line):
            if done[row, place]:
                continue
            one = rows[row][place]
            one.log_probability += float(chances[row, place, token].clamp_min(-1e4))
            one.score = one.log_probability / (len(one.ids) + 1)
            if token != end:
                one.ids.append(int(written[token]))
