"""Write the advised geometry as something to run: a Hugging Face config, or a layer call."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from headwise.advice.answer import Answer
from headwise.advice.words.answer import assumed_words
from headwise.advice.words.terms import need_words
from headwise.checks import one_of
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.hugging_face.fields import (
    config_fields,
    encoder_fields,
    is_standard,
    one_even_rank,
)
from headwise.hugging_face.sizes import WINDOW

Form = Literal["torch", "qwen3", "mistral", "deepseek_v3", "bert", "vit", "timm"]

#: Architectures of causal language models, and of encoders.
DECODERS = {
    "qwen3": "Qwen3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}
ENCODERS = {"bert": "BertForMaskedLM", "vit": "ViTForImageClassification"}


def exported(answer: Answer, form: Form) -> str:
    """The advised geometry in this form, with the sizes of the config or the data."""
    geometry = answer.best.geometry
    one_of("`export`", form, get_args(Form))
    _refuse_unless_expressible(geometry, form)
    if form == "torch":
        return layer_call(geometry)
    sizes = answer.sizes.completed(geometry.width, answer.evidence.context)
    if form == "timm":
        return (
            "from timm.models.vision_transformer import VisionTransformer\n\n"
            f"model = VisionTransformer(embed_dim={geometry.width}, depth={sizes.depth}, "
            f"num_heads={geometry.heads}, mlp_ratio={sizes.mlp_width / geometry.width:g})"
        )
    if form in ENCODERS:
        own = encoder_fields(geometry, sizes, form)
    else:
        own = config_fields(geometry, sizes) | _carried(answer, form)
    architecture = (DECODERS | ENCODERS)[form]
    return json.dumps({"architectures": [architecture], "model_type": form} | own, indent=2)


def layer_call(geometry: HeadGeometry) -> str:
    """PyTorch's own layer where it is exactly the geometry, else headwise's."""
    if is_standard(geometry):
        return (
            "from torch import nn\n\n"
            f"layer = nn.MultiheadAttention(embed_dim={geometry.width}, "
            f"num_heads={geometry.heads}, batch_first=True)"
        )
    return (
        f"from headwise.attention import {type(geometry).__name__}, fitting\n\n"
        f"geometry = {geometry}\n"
        'layer = fitting(geometry, biases="all")'
    )


def assumed_sizes(answer: Answer, form: Form) -> dict[str, int]:
    """Sizes in that form which neither a config nor the data gave, with their defaults."""
    if form == "torch":
        return {}
    found = answer.sizes.assumed(answer.evidence.width, answer.evidence.context)
    unused = {"vocab_size", "max_position_embeddings"} if form in ("vit", "timm") else set()
    return {name: value for name, value in found.items() if name not in unused}


def remarks(answer: Answer, form: Form) -> list[str]:
    """What to check in an export: assumed sizes, another mask, a rank below the need."""
    found = []
    if sizes := assumed_sizes(answer, form):
        found.append(assumed_words(sizes))
    causal = answer.evidence.mask == "causal"
    if form in DECODERS and not causal:
        found.append(f"{DECODERS[form]} has a causal mask; this was judged without one")
    if form in ENCODERS and causal:
        found.append(f"{ENCODERS[form]} has no causal mask; this was judged with one")
    if not answer.best.meets and not answer.kept:
        found.append(f"the rank is below the need: {need_words(answer.rank)}")
    return found


def _carried(answer: Answer, form: Form) -> dict[str, Any]:
    """Fields of the model's own config; Mistral has a window unless the config says otherwise."""
    kept = {name: value for name, value in answer.carried.items() if name != WINDOW}
    return kept | {WINDOW: answer.carried.get(WINDOW)} if form == "mistral" else kept


def _refuse_unless_expressible(geometry: HeadGeometry, form: Form) -> None:
    latent = isinstance(geometry, LatentGeometry)
    if form in ("torch", *(["deepseek_v3"] if latent else [])):
        return
    if form == "deepseek_v3":
        raise BadInputError(
            "deepseek_v3 needs latent attention, and the advised geometry has none",
            hint="ask with `kind=mla`",
        )
    if latent:
        raise BadInputError(
            f"{form} has no latent attention", hint="export deepseek_v3, or ask for another `kind`"
        )
    if form in DECODERS and not one_even_rank(geometry):
        raise BadInputError(
            f"{form} needs one even head dimension for queries, keys and values, and the advised "
            f"geometry has {geometry.qk_rank} and {geometry.v_rank}",
            hint="ask with `multiple_of=2`, or export torch",
        )
    if form not in DECODERS and not is_standard(geometry):
        raise BadInputError(
            f"{form} needs heads × rank = width, and the advised geometry has {geometry.heads} × "
            f"{geometry.qk_rank} at width {geometry.width}",
            hint="ask without `any_shape`, `heads` and `rank`, or export torch",
        )
