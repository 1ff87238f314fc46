"""The advised geometry as something to run: a Hugging Face config, or the layer call."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from headwise.advice.result import Advice
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry

Form = Literal["qwen3", "mistral", "deepseek_v3", "torch"]

ARCHITECTURES = {
    "qwen3": "Qwen3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}

#: What the geometry does not say, to be changed by whoever trains the model.
LAYERS, VOCABULARY, MLP_WIDTHS = 12, 32_000, 4


def exported(advice: Advice, form: str) -> str:
    """The first choice in this form.

    >>> from headwise.advice.advisor import advise_numbers
    >>> json.loads(exported(advise_numbers(512, 768), "qwen3"))["head_dim"]
    96
    """
    geometry = advice.best.geometry
    if form not in get_args(Form):
        raise BadInputError(
            f"there is no form {form!r}", hint=f"choose from {', '.join(get_args(Form))}"
        )
    if form == "torch":
        return _layer_call(geometry)
    fields = _latent(geometry) if form == "deepseek_v3" else _free(geometry, form)
    shared: dict[str, Any] = {
        "architectures": [ARCHITECTURES[form]],
        "model_type": form,
        "hidden_size": geometry.width,
        "num_attention_heads": geometry.heads,
        "num_key_value_heads": geometry.kv_heads,
        "num_hidden_layers": LAYERS,
        "intermediate_size": MLP_WIDTHS * geometry.width,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": advice.evidence.length,
    }
    return json.dumps(shared | fields, indent=2)


def _free(geometry: HeadGeometry, form: str) -> dict[str, Any]:
    if isinstance(geometry, LatentGeometry):
        raise BadInputError(
            f"{form} has no latent attention", hint="export deepseek_v3, or advise another kind"
        )
    if geometry.qk_rank != geometry.v_rank or geometry.qk_rank % 2:
        raise BadInputError(
            f"{form} takes one even head dimension for queries, keys and values, and the first "
            f"choice has {geometry.qk_rank} and {geometry.v_rank}",
            hint="advise with --multiple-of 2, or export torch",
        )
    return {"head_dim": geometry.qk_rank}


def _latent(geometry: HeadGeometry) -> dict[str, Any]:
    if not isinstance(geometry, LatentGeometry):
        raise BadInputError(
            "deepseek_v3 has latent attention, and the first choice has not",
            hint="advise with --kind mla",
        )
    return {
        "qk_nope_head_dim": geometry.content_rank,
        "qk_rope_head_dim": geometry.rope_rank,
        "v_head_dim": geometry.v_rank,
        "kv_lora_rank": geometry.kv_latent,
        "q_lora_rank": geometry.q_latent,
        # Every layer dense: the geometry says nothing of experts.
        "first_k_dense_replace": LAYERS,
    }


def _layer_call(geometry: HeadGeometry) -> str:
    kind = type(geometry).__name__
    return (
        f"from headwise.attention import {kind}, fitting\n\n"
        f"geometry = {geometry}\n"
        'layer = fitting(geometry, biases="all")'
    )
