"""Write the advised geometry as something to run: a Hugging Face config, or a layer call."""

from __future__ import annotations

import json
import math
from typing import Any, Literal, get_args

from headwise.advice.answer import Answer
from headwise.advice.evidence import Evidence
from headwise.advice.export_torch import layer_call, layer_remarks
from headwise.advice.words.answer import assumed_words
from headwise.advice.words.terms import is_open, need_words
from headwise.checks import one_of
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.hugging_face.fields import (
    ModelSizes,
    config_fields,
    encoder_fields,
    is_standard,
    one_even_rank,
)
from headwise.hugging_face.sizes import IMAGE_SIZES, KEPT_BY, WINDOW

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
        window = answer.carried.get(WINDOW)
        return layer_call(geometry, answer.layer, answer.evidence.mask, window)
    sizes = answer.sizes.completed(geometry.width, answer.evidence.context)
    if form == "timm":
        return _timm(answer, sizes)
    fields = encoder_fields(geometry, sizes, form) if form in ENCODERS else None
    own = (fields or config_fields(geometry, sizes)) | _carried(answer, form)
    if form == "vit":
        own |= _image_sizes(answer)
    named = answer.carried.get("architectures") if answer.family == form else None
    architectures = named or [(DECODERS | ENCODERS)[form]]
    return json.dumps({"architectures": architectures, "model_type": form} | own, indent=2)


def assumed_sizes(answer: Answer, form: Form) -> dict[str, int]:
    """Sizes in that form which neither a config nor the data gave, with their defaults."""
    if form == "torch":
        return {}
    found = answer.sizes.assumed(answer.evidence.width, answer.evidence.context)
    if form not in ("vit", "timm"):
        return found
    unused = {"vocab_size", "max_position_embeddings"}
    found = {name: value for name, value in found.items() if name not in unused}
    return found | {k: v for k, v in IMAGE_SIZES.items() if k not in _known_image_sizes(answer)}


def remarks(answer: Answer, form: Form) -> list[str]:
    """What to check in an export: assumed sizes, another mask, a rank below the need."""
    found = []
    if sizes := assumed_sizes(answer, form):
        found.append(assumed_words(sizes))
    found += _differences(answer, form)
    causal = answer.evidence.mask == "causal"
    if form in DECODERS and not causal:
        found.append(f"{DECODERS[form]} has a causal mask; this was judged without one")
    if form in ENCODERS and causal:
        found.append(f"{ENCODERS[form]} has no causal mask; this was judged with one")
    if not answer.best.meets and not answer.kept:
        low = "whether the rank is enough is unknown" if is_open(answer.rank) else None
        found.append(f"{low or 'the rank is below the need'}: {need_words(answer.rank)}")
    return found


def _differences(answer: Answer, form: Form) -> list[str]:
    """Where the export is not the layer or the architecture of the config's model."""
    family, layer = answer.family, answer.layer
    if family is None or layer is None:
        return []
    if form == "torch":
        return layer_remarks(family, layer)
    own = {"timm": "vit"}.get(form, form)
    if family == own or (own, family) == ("mistral", "llama"):
        return []
    normed = ": it also normalises queries and keys" if form == "qwen3" and not layer.normed else ""
    return [f"{form} is another architecture than {family}{normed}"]


def _timm(answer: Answer, sizes: ModelSizes) -> str:
    """A VisionTransformer of timm, with the sizes of its images."""
    geometry, found = answer.best.geometry, _image_sizes(answer)
    labels = answer.carried.get("id2label")
    image = {
        "img_size": found["image_size"],
        "patch_size": found["patch_size"],
        "in_chans": found["num_channels"],
        "num_classes": found.get("num_labels", len(labels or ())),
    }
    image |= {"qkv_bias": False} if answer.carried.get("qkv_bias") is False else {}
    given = ", ".join(f"{name}={value}" for name, value in image.items())
    return (
        "from timm.models.vision_transformer import VisionTransformer\n\n"
        f"model = VisionTransformer({given}, embed_dim={geometry.width}, depth={sizes.depth}, "
        f"num_heads={geometry.heads}, mlp_ratio={sizes.mlp_width / geometry.width:g})"
    )


def _image_sizes(answer: Answer) -> dict[str, Any]:
    """Every size of an image model, with defaults; classes as the config names them."""
    known = _known_image_sizes(answer)
    named = {"num_labels"} if "id2label" in answer.carried else set()
    return {k: known.get(k, v) for k, v in IMAGE_SIZES.items() if k not in named}


def _known_image_sizes(answer: Answer) -> dict[str, Any]:
    """The sizes that the config or the images give."""
    found = {name: answer.carried[name] for name in IMAGE_SIZES if name in answer.carried}
    if "id2label" in answer.carried:
        found["num_labels"] = len(answer.carried["id2label"])
    return _measured_image_sizes(answer.evidence) | found


def _measured_image_sizes(evidence: Evidence) -> dict[str, Any]:
    """Side, patch and channels of square images that were measured."""
    patch, known = evidence.patch, evidence.statistics
    side = math.isqrt(evidence.context)
    if patch is None or known is None or known.numbers is None or side**2 != evidence.context:
        return {}
    return {
        "image_size": side * patch,
        "patch_size": patch,
        "num_channels": known.numbers // patch**2,
    }


def _carried(answer: Answer, form: Form) -> dict[str, Any]:
    """Fields of the model's own config; Mistral has a window unless the config says otherwise."""
    kept = {name: answer.carried[name] for name in KEPT_BY[form] if name in answer.carried}
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
