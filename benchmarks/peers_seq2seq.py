"""Contestants of decoding: the same Marian model, random weights, in each program.

Every one is a function from a number of sentences and of beams to nothing: it writes TOKENS tokens
for each sentence of TOKENS tokens, the end never among them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from nlpkit.generate.beam import BeamSettings, beam_search
from nlpkit.models.seq2seq import build_seq2seq
from nlpkit.models.seq2seq_cpu import CompiledDecoder
from nlpkit.models.seq2seq_settings import END, Seq2SeqArchitecture

TOKENS = 24
NEVER = -1e4
Decode = Callable[[int, int], Any]  # sentences, beams


def ours(layers: int, dim: int, vocab: int, *, int8: bool = False) -> Decode:
    """nlpkit's own."""
    shape = Seq2SeqArchitecture(
        model="transformer",
        source_vocab=vocab,
        target_vocab=vocab,
        joint=True,
        dim=dim,
        layers=layers,
        heads=8,
        norm="post",
        norm_gains=True,
        bias=True,
        qk_norm=False,
        positions="sinusoidal",
        activation="silu",
        output_bias=True,
    )
    model = build_seq2seq(shape).requires_grad_(False).eval()
    assert model.head_bias is not None
    model.head_bias.data[END] = NEVER
    if int8:
        model.quantize()
    model.compiled = CompiledDecoder(model)  # type: ignore[arg-type]

    @torch.inference_mode()
    def decode(rows: int, beams: int) -> None:
        source = torch.arange(rows * TOKENS).view(rows, TOKENS) % (vocab - 10) + 5
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        found = beam_search(model, memory, BeamSettings(beams=beams), [TOKENS + 1] * rows)
        assert len(found) == rows
        assert len(found[0][0].ids) == TOKENS

    return decode


def marian(layers: int, dim: int, vocab: int) -> Any:
    """A random model of transformers' MarianMTModel."""
    transformers: Any = import_module("transformers")
    config = transformers.MarianConfig(
        vocab_size=vocab,
        d_model=dim,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_ffn_dim=4 * dim,
        decoder_ffn_dim=4 * dim,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        max_position_embeddings=256,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=vocab - 1,
        eos_token_id=0,
        forced_eos_token_id=None,
        decoder_start_token_id=vocab - 1,
    )
    torch.manual_seed(1)
    return transformers.MarianMTModel(config).eval()


def hugging_face(model: Any) -> Decode:
    """transformers' own generate()."""
    vocab = model.config.vocab_size

    @torch.inference_mode()
    def decode(rows: int, beams: int) -> None:
        source = torch.arange(rows * TOKENS).view(rows, TOKENS) % (vocab - 10) + 5
        found = model.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            num_beams=beams,
            do_sample=False,
            min_new_tokens=TOKENS,
            max_new_tokens=TOKENS,
        )
        assert found.shape[1] >= TOKENS

    return decode


def ctranslate2(model: Any, compute: str) -> Decode:
    """ctranslate2's, converted from the same model."""
    peer: Any = import_module("ctranslate2")
    loader: Any = import_module("ctranslate2.converters.transformers").MarianMTLoader()
    spec = loader.get_model_spec(model)
    words = ["</s>", "<unk>", *(f"w{n}" for n in range(2, model.config.vocab_size - 1))]
    loader.set_vocabulary(spec, words)
    spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
    spec.config.decoder_start_token = "</s>"
    folder = tempfile.mkdtemp()
    spec.validate()
    spec.optimize()
    spec.save(folder)
    translator = peer.Translator(
        folder, compute_type=compute, inter_threads=1, intra_threads=1, max_queued_batches=-1
    )

    def decode(rows: int, beams: int) -> None:
        source = [
            [words[(row * TOKENS + n) % (len(words) - 10) + 5] for n in range(TOKENS)]
            for row in range(rows)
        ]
        found = translator.translate_batch(
            source,
            beam_size=beams,
            min_decoding_length=TOKENS,
            max_decoding_length=TOKENS,
            max_batch_size=0,
        )
        assert len(found[0].hypotheses[0]) == TOKENS

    return decode
