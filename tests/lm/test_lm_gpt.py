"""The stream: tokenised once, batches by number, text in and out, two processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_gpts import GREEDY, TEXT, TINY, randomized, small_gpt, written
from warm import Warm

from nlpkit.errors import NlpkitError
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models import gpt_cpu as compiled
from nlpkit.models.build import build_model
from nlpkit.models.feedforward import Bigram
from nlpkit.models.gpt import GPT
from nlpkit.models.settings import ModelSettings
from nlpkit.tasks.lm.attention import attention_records
from nlpkit.tasks.lm.model import GptModel, TextScore
from nlpkit.tasks.lm.settings import GptSettings
from nlpkit.tasks.lm.stream import split_stream, tokenize_stream, windows
from nlpkit.tasks.lm.train import new_model, prepare_training, stream_loss
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, TextStream, check_sizes
from nlpkit.text.subwords import END_OF_TEXT, Subwords
from nlpkit.textio import TextBlock
from nlpkit.training.batches import RandomWindows

# --- the stream ---------------------------------------------------------------------------------


def test_every_tokenizer_gives_the_text_back(tmp_path: Path, subwords: Subwords) -> None:
    subwords.save(str(tmp_path / "tokenizer.json"))
    half = len(TEXT) // 2
    blocks = [TextBlock(part.encode(), "a", 1) for part in (TEXT[:half], TEXT[half:])]
    for tokenizer in ("char", "byte", str(tmp_path / "tokenizer.json")):
        codec, ids = tokenize_stream(blocks, tokenizer, str(tmp_path))
        assert codec.decode(ids.tolist()) == TEXT
        assert int(ids.max()) < len(codec)
    assert os.listdir(tmp_path) == ["tokenizer.json"]


def test_documents_of_subwords_are_kept_apart(tmp_path: Path, subwords: Subwords) -> None:
    subwords.save(str(tmp_path / "tokenizer.json"))
    blocks = [TextBlock(b"one", "a", 1), TextBlock(b"two", "b", 1)]
    codec, ids = tokenize_stream(blocks, str(tmp_path / "tokenizer.json"), str(tmp_path))
    assert codec.decode(ids.tolist()) == "one<|endoftext|>two"


def test_empty_and_short_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="no text"):
        tokenize_stream([], "byte", str(tmp_path))
    with pytest.raises(NlpkitError, match="too few for `block_size` 64"):
        split_stream(np.arange(100), 64, 0.1)


def test_batches_depend_on_seed_and_number() -> None:
    ids = np.arange(1000)
    batches = RandomWindows(ids, batch_size=3, block_size=8, seed=1)
    idx, targets = batches[5]
    assert idx.shape == (3, 8)
    assert torch.equal(idx + 1, targets)
    assert torch.equal(idx, batches[5][0])
    assert not torch.equal(idx, batches[6][0])


@given(st.integers(2, 80), st.integers(1, 9), st.integers(1, 4))
def test_windows_cover_every_target_once(length: int, block: int, batch: int) -> None:
    ids = np.arange(length)
    found = [t for _, targets in windows(ids, block, batch) for t in targets.flatten().tolist()]
    assert found == list(range(1, length))


@given(st.text(max_size=30))
def test_streamed_text_is_whole_characters(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    stream = TextStream(Bytes())
    pieces = [stream.add(index) for index in Bytes().encode(text)]
    assert "".join(pieces) + stream.finish() == text
    assert all(piece in text for piece in pieces)


def test_streamed_subwords_give_the_text(subwords: Subwords) -> None:
    stream = TextStream(subwords)
    pieces = [stream.add(index) for index in subwords.encode(TEXT)]
    assert "".join(pieces) + stream.finish() == TEXT


# --- training -----------------------------------------------------------------------------------


def test_training_lowers_the_loss_and_frozen_layers_stay() -> None:
    settings = GptSettings(**{**vars(TINY), "max_iters": 60}).resolve()
    codec = Characters.from_text([TEXT])
    ids = np.array(codec.encode(TEXT))
    model = new_model(settings, len(codec))
    before = stream_loss(model, ids)
    list(prepare_training(model, ids, ids, settings).fit())
    assert before == pytest.approx(math.log(len(codec)), abs=1e-3)
    assert stream_loss(model, ids) < 0.6 * before
    frozen = GptSettings(**{**vars(TINY), "freeze": 1}).resolve()
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    list(prepare_training(model, ids, ids, frozen).fit())
    changed = {name for name, value in model.state_dict().items() if (value != kept[name]).any()}
    assert changed
    assert not any(name.startswith(("embedding", "previous", "blocks.0.")) for name in changed)
    with pytest.raises(NlpkitError, match="has 2 layers"):
        prepare_training(model, ids, ids, GptSettings(**{**vars(TINY), "freeze": 9}).resolve())


def test_unknown_size_is_refused() -> None:
    with pytest.raises(NlpkitError, match="no size 'huge'"):
        GptSettings(size="huge").resolve()


_WORKER = """
import sys, numpy as np, torch
torch.set_num_threads(1)
from nlpkit.training.distributed import Processes
from nlpkit.tasks.lm.settings import GptSettings
from nlpkit.tasks.lm.train import new_model, prepare_training, stream_loss
processes = Processes.from_environment()
processes.join(torch.device("cpu"))
ids = np.random.default_rng(1).integers(0, 9, 400)
settings = GptSettings(layers=1, heads=2, dim=8, block_size=8, batch_size=4, max_iters=6,
                       grad_accum=int(sys.argv[1])).resolve()
model = new_model(settings, 9)
list(prepare_training(model, ids, ids, settings, processes).fit())
if processes.is_first:
    print("loss", stream_loss(model, ids))
processes.leave()
"""


def test_two_processes_get_the_loss_of_one_that_does_their_work(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(_WORKER)
    single = warm.run(tmp_path, "4", script=script)
    assert single.code == 0, single.err
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node=2", str(script), "2"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    double = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert double.returncode == 0, double.stderr
    losses = [float(said.split("loss")[1]) for said in (single.out, double.stdout)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


# --- text in and out ----------------------------------------------------------------------------


def test_prompts_together_are_continued_as_alone() -> None:
    gpt = small_gpt()
    prompts = ["The king", "to", "5 € in 東京"]
    together = written(gpt, prompts, 6)  # fewer than make the block full
    assert together == [written(gpt, [prompt], 6)[0] for prompt in prompts]


def test_stop_text_is_not_part_of_the_text() -> None:
    gpt = small_gpt()
    whole = written(gpt, ["The king"], 20)[0]
    stop = whole[4:6]
    stopped = written(gpt, ["The king"], 20, stop=[stop])[0]
    assert stopped == whole[: whole.index(stop)]


def bigram_gpt(subwords: Subwords, follows: dict[int, int], vocab_size: int = 290) -> GptModel:
    """A model that is certain of what follows each id."""
    model = build_model(ModelSettings(model="bigram", vocab_size=vocab_size)).eval()
    assert isinstance(model, Bigram)
    model.requires_grad_(False)
    for before, after in follows.items():
        model.table[before, after] = 90.0
    return GptModel(model, subwords)


def test_a_text_ends_at_its_end_and_the_others_go_on(subwords: Subwords) -> None:
    a, b, c, d = (subwords.encode(letter)[0] for letter in "abcd")
    end = subwords.encode(END_OF_TEXT)[0]
    gpt = bigram_gpt(subwords, {a: b, b: c, c: end, end: d, d: d})
    steps = list(gpt.continue_prompts(["a", "d", "c"], 6, GREEDY, 1, log_probabilities=True))
    rows = [row for row, _ in steps[-1]]
    assert [row.text for row in rows] == ["bc", "dddddd", ""]
    assert [row.stopped for row in rows] == [True, False, True]
    assert rows[0].ids == [b, c, end]  # the end counts: it has a probability
    assert [len(row.log_probabilities) for row in rows] == [3, 6, 1]
    assert ["".join(step[place][1] for step in steps) for place in range(3)] == [
        row.text for row in rows
    ]
    assert len(list(gpt.continue_prompts(["a", "c"], 6, GREEDY, 1))) == 3  # nothing left to do
    stopped = list(gpt.continue_prompts(["a"], 6, GREEDY, 1, stop=["c"]))[-1][0][0]
    assert (stopped.text, stopped.stopped) == ("b", True)


@pytest.mark.parametrize("way", ["modules", "compiled", "drafts", "int8"])
def test_a_text_ends_there_in_every_way_of_writing(
    subwords: Subwords, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    gpt = randomized(GptModel(new_model(TINY.resolve(), 290).eval(), subwords), 0.3)
    assert isinstance(gpt.model, GPT)
    if way == "drafts":
        monkeypatch.setattr(compiled, "_LARGE_BLOCKS", 1)
    if way == "int8":
        gpt.quantize()
    elif way != "modules":
        compiled.compile_step(gpt.model)
        assert gpt.model.step is not None
        assert (gpt.model.step.draft is not None) == (way == "drafts")
    whole = list(gpt.continue_prompts(["The king"], 30, GREEDY, 1))[-1][0][0]
    assert len(whole.ids) == 30
    end = whole.ids[9]
    monkeypatch.setattr(type(gpt.codec), "end_id", end)
    steps = list(gpt.continue_prompts(["The king"], 30, GREEDY, 1))
    cut = steps[-1][0][0]
    first = whole.ids.index(end)
    assert cut.ids == whole.ids[: first + 1]
    assert cut.text == gpt.codec.decode(whole.ids[:first])
    assert len(steps) == first + 1


@pytest.mark.parametrize("way", ["modules", "drafts"])
@pytest.mark.parametrize("top_k", [0, 5])
def test_ids_that_pad_the_embedding_are_never_drawn(
    subwords: Subwords, monkeypatch: pytest.MonkeyPatch, way: str, top_k: int
) -> None:
    gpt = randomized(GptModel(new_model(TINY.resolve(), 300).eval(), subwords), 0.3)
    assert isinstance(gpt.model, GPT)
    with torch.no_grad():
        gpt.model.head.weight[290:] *= 9  # half of them are likelier than all others
    if way == "drafts":
        monkeypatch.setattr(compiled, "_LARGE_BLOCKS", 1)
        monkeypatch.setattr(compiled, "_LARGE_HEAD", 1)
        compiled.compile_step(gpt.model)
    drawn = list(gpt.continue_prompts(["The king"], 30, SamplingSettings(top_k=top_k), 1))
    row = drawn[-1][0][0]
    assert row.stopped or len(row.ids) == 30
    assert max(row.ids) < 290
    with pytest.raises(NlpkitError, match="more than the 290 ids"):
        list(gpt.continue_prompts(["The king"], 3, SamplingSettings(top_k=295), 1))


def test_a_tokenizer_with_ids_beyond_the_embedding_is_refused(subwords: Subwords) -> None:
    class Backend:
        def get_vocab(self) -> dict[str, int]:
            return {**subwords.backend.get_vocab(), "far": 5000}

        def __getattr__(self, name: str) -> object:
            return getattr(subwords.backend, name)

    far = Subwords(Backend())
    with pytest.raises(NlpkitError, match="ids up to 5000, the model 291"):
        check_sizes(far, 291, "m")


def test_log_probabilities_are_those_of_the_model() -> None:
    gpt = small_gpt()
    steps = list(gpt.continue_prompts(["to be"], 5, GREEDY, 1, log_probabilities=True))
    row = steps[-1][0][0]
    logits, _ = gpt.model(torch.tensor([gpt.codec.encode("to be") + row.ids]))
    normal = logits[0].log_softmax(-1)
    expected = [normal[4 + i, index].item() for i, index in enumerate(row.ids)]
    assert row.log_probabilities == pytest.approx(expected, abs=1e-4)


def test_score_of_a_window_is_the_loss_and_strides_agree_on_what_they_count() -> None:
    gpt = small_gpt()
    text = TEXT[:16]
    ids = torch.tensor([gpt.codec.encode("\n" + text)])
    _, loss = gpt.model(ids[:, :-1], ids[:, 1:])
    found = gpt.score(text)
    assert found.nats == pytest.approx(loss.item() * 16, rel=1e-4)
    assert found.bytes == len(text.encode())
    assert found.perplexity == pytest.approx(math.exp(loss.item()), rel=1e-4)
    for stride in (1, 5, 16):
        assert gpt.score(TEXT[:100], stride).tokens == 100
    assert gpt.score("").tokens == 0
    assert 1e300 < TextScore(nats=5000.0, tokens=2, bytes=2).perplexity < math.inf


def test_int8_weights_predict_almost_as_well(subwords: Subwords) -> None:
    gpt = randomized(GptModel(new_model(TINY.resolve(), 290), subwords), 0.1)
    exact = gpt.score(TEXT[:300]).perplexity
    gpt.quantize()
    assert gpt.score(TEXT[:300]).perplexity == pytest.approx(exact, rel=0.01)
    assert written(gpt, ["The king"], 5)


def test_attention_records_name_layers_heads_and_tokens() -> None:
    gpt = small_gpt()
    records = attention_records(gpt, "to be")
    assert [(r["layer"], r["head"]) for r in records] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert records[0]["tokens"] == list("to be")
    assert [len(row) for row in records[0]["weights"]] == [1, 2, 3, 4, 5]
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in records[0]["weights"])
    with pytest.raises(NlpkitError, match="`layer` 3: the model has 2"):
        attention_records(gpt, "to be", layer=3)
    with pytest.raises(NlpkitError, match="from 1 to 16"):
        attention_records(gpt, TEXT)


def test_half_a_surrogate_pair_is_no_byte_but_a_replacement_character() -> None:
    assert Bytes().encode("a\udcff") == list("a\ufffd".encode())
