"""Tiny models as other programs keep them: GPT-2, nanoGPT, fastText, AllenNLP's ELMo."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .samples import Samples

DIM = 12  # of the GPT-2 written by hand
VOCAB = 300
ELMO_OPTIONS = {
    "lstm": {
        "cell_clip": 3,
        "use_skip_connections": True,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 4,
        "dim": 6,
    },
    "char_cnn": {
        "embedding": {"dim": 3},
        "filters": [[1, 4], [2, 5]],
        "n_highway": 2,
        "n_characters": 262,
        "max_characters_per_token": 10,
        "activation": "tanh",
    },
}


def write_gpt2(samples: Samples) -> None:
    """GPT-2 as others keep it: a folder of Hugging Face and a checkpoint of nanoGPT."""
    import torch
    from safetensors.torch import save_file

    shapes = {"wte.weight": (VOCAB, DIM), "wpe.weight": (8, DIM)}
    layers = {"ln_1": (DIM,), "attn.c_attn": (DIM, 3 * DIM), "attn.c_proj": (DIM, DIM)}
    layers |= {"ln_2": (DIM,), "mlp.c_fc": (DIM, 4 * DIM), "mlp.c_proj": (4 * DIM, DIM)}
    for name, shape in {"ln_f": (DIM,), **{f"h.0.{n}": s for n, s in layers.items()}}.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[-1:]}
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    folder = samples.path("gpt2")
    folder.mkdir()
    sizes = {"n_embd": DIM, "n_head": 2, "n_layer": 1, "vocab_size": VOCAB}
    config = {"model_type": "gpt2", **sizes, "n_positions": 8}
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(samples.path("tokenizer.json"), folder)
    save_file(tensors, folder / "model.safetensors")
    turned = {
        f"transformer.{name}": tensor.t().contiguous()
        if tensor.dim() == 2 and name.startswith("h.")
        else tensor
        for name, tensor in tensors.items()
    }
    saved = {"model_args": {**sizes, "block_size": 8, "bias": True}, "model": turned}
    torch.save(saved, samples.path("ckpt.pt"))
    samples.add("foreign", "gpt2")
    samples.add("foreign", "ckpt.pt")


def write_fasttext(samples: Samples) -> None:
    """fastText's ``.bin``: two words and ten buckets."""
    arguments = [4, 5, 5, 1, 5, 1, 1, 2, 10, 2, 3, 100]
    data = struct.pack("<ii12id", 793712314, 12, *arguments, 1e-4)
    data += struct.pack("<iiiqq", 2, 2, 0, 16, -1)
    for word in (b"the", b"king"):
        data += word + b"\0" + struct.pack("<qb", 5, 0)
    data += struct.pack("<?qq", False, 12, 4) + struct.pack("<48f", *(i / 50 for i in range(48)))
    samples.path("fasttext.bin").write_bytes(data + struct.pack("<?qq", False, 0, 0))
    samples.add("vectors", "fasttext.bin")


def write_elmo(folder: Path) -> dict[str, Any]:
    """A tiny random ELMo in AllenNLP's form; its arrays by name."""
    import h5py

    (folder / "options.json").write_text(json.dumps(ELMO_OPTIONS))
    random = np.random.default_rng(1)
    dim, hidden, total = 4, 6, 9
    shapes = {
        "char_embed": (261, 3),
        "CNN/W_cnn_0": (1, 1, 3, 4),
        "CNN/b_cnn_0": (4,),
        "CNN/W_cnn_1": (1, 2, 3, 5),
        "CNN/b_cnn_1": (5,),
        "CNN_proj/W_proj": (total, dim),
        "CNN_proj/b_proj": (dim,),
    }
    for number in range(2):
        for part in ("carry", "transform"):
            shapes[f"CNN_high_{number}/W_{part}"] = (total, total)
            shapes[f"CNN_high_{number}/b_{part}"] = (total,)
        for way in range(2):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * dim, 4 * hidden)
            shapes[f"{cell}/B"] = (4 * hidden,)
            shapes[f"{cell}/W_P_0"] = (hidden, dim)
    arrays = {name: random.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return arrays
