"""What the folders of Hugging Face's transformers have in common, whatever the model.

``config.json`` is read strictly: a value that could change the arithmetic and is not known here is
refused, never passed over. Weights are ``*.safetensors``; pickles are not read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from nlpkit import folders, modeldir, textio
from nlpkit.errors import NlpkitError

# what says nothing about the states of a trained model: names, how to train and to write
HARMLESS = frozenset(
    """
    architectures bad_words_ids begin_suppress_tokens bos_token_id chunk_size_feed_forward
    decoder_start_token_id diversity_penalty do_sample dtype early_stopping
    encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty finetuning_task
    forced_bos_token_id forced_eos_token_id gradient_checkpointing id2label initializer_range
    is_decoder label2id length_penalty max_length min_length model_type no_repeat_ngram_size
    num_beam_groups num_beams num_labels num_return_sequences output_attentions
    output_hidden_states output_past output_scores pad_token_id predict_special_tokens prefix
    problem_type remove_invalid_values repetition_penalty return_dict return_dict_in_generate
    sep_token_id suppress_tokens task_specific_params temperature tf_legacy_loss
    tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript transformers_version
    typical_p use_bfloat16 use_cache
    """.split()
)


def check_export(folder: str | os.PathLike[str]) -> None:
    """Refuse a place that holds something or cannot be written."""
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise NlpkitError(f"{folder} exists and is not an empty folder", hint="another name")
    folders.check_place(folder)


def read_config(path: Path, hint: str) -> dict[str, Any]:
    """What a ``config.json`` holds."""
    if not path.is_file():
        raise NlpkitError(f"{path.parent} has no {path.name}", hint=hint)
    try:
        values = textio.parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NlpkitError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise NlpkitError(f"{path} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise NlpkitError(f"{path} does not describe a model")
    return values


def read_model_config(folder: Path, hint: str) -> dict[str, Any]:
    """What the ``config.json`` of a model says; a folder of ours is refused."""
    values = read_config(folder / modeldir.CONFIG, hint)
    if "kind" in values and "model_type" not in values:
        raise NlpkitError(
            f"{folder} is a model of nlpkit already, of kind {values['kind']}", hint=hint
        )
    return values


def read_size(
    config: Mapping[str, Any], name: str, other: str | None = None, *, hint: str = ""
) -> int:
    """A size that may have two names."""
    found = {key: config[key] for key in (name, other or name) if key in config}
    if not found:
        raise NlpkitError(f"there is no {name} in the model's configuration", hint=hint)
    for key, value in found.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
            raise NlpkitError(f"{key} cannot be {value!r}")
    if len(set(found.values())) > 1:
        first, second = (f"{key} is {value}" for key, value in found.items())
        raise NlpkitError(f"{first}, but {second}")
    return int(next(iter(found.values())))


def refuse_unknown(
    config: Mapping[str, Any], known: Collection[str], source: str | os.PathLike[str]
) -> None:
    """Refuse a configuration that asks for something that is not known here."""
    for name, value in config.items():
        if value and name not in known and not name.startswith("_"):
            raise NlpkitError(
                f"{source}: config.json has {name}, which may change the arithmetic",
                hint="take it out of config.json if it does not",
            )


def read_switch(config: Mapping[str, Any], name: str, usual: bool | None = None) -> bool:
    """A value that is true or false."""
    value = config.get(name, usual)
    if not isinstance(value, bool):
        raise NlpkitError(f"{name} cannot be {value!r}", hint="true or false")
    return value


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors of all ``.safetensors`` files of a folder."""
    from safetensors import SafetensorError

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise NlpkitError(
            f"{folder} has no .safetensors file",
            hint="save the model with safe_serialization=True; a pickle is not read",
        )
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            tensors.update(modeldir.load_tensors(file))
        except (SafetensorError, ValueError, KeyError) as error:
            raise NlpkitError(f"{file} is damaged: {error}", hint="copy it again") from None
    return tensors
