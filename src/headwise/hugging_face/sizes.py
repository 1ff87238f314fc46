"""The fields of a config besides its heads: sizes, and what an exported config keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwise.hugging_face.fields import ModelSizes

#: Sizes assumed for an export where neither a config nor the data give them.
LAYERS, VOCABULARY, MLP_WIDTHS = 12, 32_000, 4

#: Sizes, under the names that families give them.
FIELDS = {
    "depth": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    "mlp_width": ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "encoder_ffn_dim"),
    "vocabulary": ("vocab_size", "n_vocab"),
    # Encoder-decoder models name two lengths. Their encoder is judged, so the source comes first.
    "context": (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "max_seq_len",
        "seq_length",
        "max_source_positions",
        "max_target_positions",
    ),
}

#: Fields that an exported config can take over, with the types of their values.
CARRIED: dict[str, tuple[type, ...]] = {
    "rope_theta": (int, float),
    "rope_scaling": (dict,),
    "rms_norm_eps": (int, float),
    "hidden_act": (str,),
    "tie_word_embeddings": (bool,),
    "initializer_range": (int, float),
    "attention_dropout": (int, float),
    "bos_token_id": (int,),
    "eos_token_id": (int, list),
    "pad_token_id": (int,),
    "attention_bias": (bool,),
    "architectures": (list,),
    "type_vocab_size": (int,),
    "layer_norm_eps": (int, float),
    "hidden_dropout_prob": (int, float),
    "attention_probs_dropout_prob": (int, float),
    "num_labels": (int,),
    "id2label": (dict,),
    "label2id": (dict,),
    "image_size": (int, list),
    "patch_size": (int, list),
    "num_channels": (int,),
    "qkv_bias": (bool,),
}

_DECODER = ("rope_theta", "rope_scaling", "rms_norm_eps", "hidden_act", "tie_word_embeddings")
_DECODER += ("initializer_range", "attention_dropout", "bos_token_id", "eos_token_id")
_DECODER += ("pad_token_id",)
_ENCODER = ("hidden_act", "layer_norm_eps", "hidden_dropout_prob", "attention_probs_dropout_prob")
_ENCODER += ("initializer_range", "num_labels", "id2label", "label2id")

#: Which of these fields each form of an export has.
KEPT_BY: dict[str, tuple[str, ...]] = {
    "qwen3": (*_DECODER, "attention_bias"),
    "deepseek_v3": (*_DECODER, "attention_bias"),
    "mistral": _DECODER,
    "bert": (*_ENCODER, "type_vocab_size", "pad_token_id", "tie_word_embeddings"),
    "vit": (*_ENCODER, "image_size", "patch_size", "num_channels", "qkv_bias"),
}

#: Sizes of an image model, with the defaults of ViT.
IMAGE_SIZES = {"image_size": 224, "patch_size": 16, "num_channels": 3, "num_labels": 2}

#: The sliding window, and the layer type that uses it in newer configs.
WINDOW, SLIDING = "sliding_window", "sliding_attention"


@dataclass(frozen=True)
class KnownSizes:
    """Sizes given by a config or by the data; None is unknown.

    >>> KnownSizes(depth=2).completed(width=64, length=16)
    ModelSizes(depth=2, mlp_width=256, vocabulary=32000, context=16)
    """

    depth: int | None = None
    mlp_width: int | None = None
    vocabulary: int | None = None
    context: int | None = None

    def completed(self, width: int, length: int) -> ModelSizes:
        """Every size, with defaults for the unknown ones."""
        return ModelSizes(
            depth=self.depth or LAYERS,
            mlp_width=self.mlp_width or MLP_WIDTHS * width,
            vocabulary=self.vocabulary or VOCABULARY,
            context=self.context or length,
        )

    def assumed(self, width: int, length: int) -> dict[str, int]:
        """The defaults used for unknown sizes, under their usual field names."""
        known, whole = asdict(self), asdict(self.completed(width, length))
        return {FIELDS[name][0]: whole[name] for name, value in known.items() if value is None}


UNKNOWN = KnownSizes()


def told_sizes(*parts: Mapping[str, Any]) -> KnownSizes:
    """Return each size from the first part that gives it."""
    return KnownSizes(**{name: _whole(parts, names) for name, names in FIELDS.items()})


def carried_fields(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that an export keeps, each from the first part that has it."""
    unfolded = [_with_rotary_base(part) for part in parts]
    found: dict[str, Any] = {}
    for name, types in CARRIED.items():
        values = (part[name] for part in unfolded if _is_of(part.get(name), types))
        value = next(values, None)
        if value is not None:
            found[name] = value
    return found


def sliding_window(*parts: Mapping[str, Any]) -> int | None:
    """Return how many tokens back a token attends, if a config limits that."""
    used = (part.get(WINDOW) for part in parts if part.get("use_sliding_window") is not False)
    return next(
        (value for value in used if value is not None and _is_of(value, (int,)) and value > 0), None
    )


def windowed_layers(part: Mapping[str, Any]) -> tuple[int, int] | None:
    """How many layers of how many use the window: (0, 0) for all of them, None for no layer."""
    kinds = part.get("layer_types")
    if isinstance(kinds, list):
        count = kinds.count(SLIDING)
        return (count, len(kinds)) if count else None
    pattern = part.get("sliding_window_pattern")
    if _is_of(pattern, (int,)) and pattern > 1:  # type: ignore[operator]
        return pattern - 1, pattern  # type: ignore[operator, return-value]
    return 0, 0


def _whole(parts: tuple[Mapping[str, Any], ...], names: tuple[str, ...]) -> int | None:
    """The first value that is a whole number above zero; a list per layer is none."""
    values = (part.get(name) for part in parts for name in names)
    return next((v for v in values if v is not None and _is_of(v, (int,)) and v > 0), None)


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    """Whether the value has one of these types; True and False are no numbers."""
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _with_rotary_base(part: Mapping[str, Any]) -> dict[str, Any]:
    """Split ``rope_parameters`` of newer configs into the two fields that all versions read."""
    rotary = part.get("rope_parameters")
    if not isinstance(rotary, Mapping):
        return dict(part)
    unfolded: dict[str, Any] = {"rope_theta": rotary.get("rope_theta")}
    if rotary.get("rope_type", "default") != "default":
        unfolded["rope_scaling"] = {k: v for k, v in rotary.items() if k != "rope_theta"}
    return {**part, **unfolded}
