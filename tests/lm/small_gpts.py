"""Small GPTs with random weights, and the text they know."""

from __future__ import annotations

from typing import Any

import torch

from nlpkit.generate.sampling import SamplingSettings
from nlpkit.tasks.lm.model import GptModel
from nlpkit.tasks.lm.settings import GptSettings
from nlpkit.tasks.lm.train import new_model
from nlpkit.text.characters import Characters

TEXT = "The café cost 5 € in 東京. 👍🏽 The king said: to be, or not to be!\n" * 30
GREEDY = SamplingSettings(temperature=0)
TINY = GptSettings(layers=2, heads=2, dim=16, block_size=16, batch_size=4, max_iters=12)


def randomized(gpt: GptModel, std: float = 0.3) -> GptModel:
    generator = torch.Generator().manual_seed(2)
    for parameter in gpt.model.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    return gpt


def small_gpt() -> GptModel:
    codec = Characters.from_text([TEXT])
    model = new_model(TINY.resolve(), len(codec)).eval()
    return randomized(GptModel(model, codec))


def written(gpt: GptModel, prompts: list[str], count: int, **options: Any) -> list[str]:
    steps = list(gpt.continue_prompts(prompts, count, GREEDY, 1, **options))
    streamed = ["".join(step[row][1] for step in steps) for row in range(len(prompts))]
    assert streamed == [row.text for row, _ in steps[-1]]
    return streamed
