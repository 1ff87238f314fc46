"""The Hugging Face families that can be cut, and where their attention maps are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from headwise.errors import BadInputError

#: Model types and the class that is saved: decoders with rotary positions, and an encoder.
FAMILIES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "bert": "BertModel",
}

#: Ways that cache one vector for all key heads.
SHARED = ("latent", "rotated")

#: How keys are cut: see ``modeling_headwise``.
Keys = Literal["pairs", "latent", "rotated", "factors"]


@dataclass(frozen=True)
class AttentionParts:
    """The four maps of one attention layer, and its shape."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear
    heads: int
    kv_heads: int
    rope_theta: float | None = None

    @property
    def head_dim(self) -> int:
        """The dimension of a head."""
        return self.key.out_features // self.kv_heads

    @property
    def width(self) -> int:
        """The width of the tokens."""
        return self.key.in_features


def refuse_unsupported(config: Any) -> None:
    """Refuse a model type that cannot be cut, and name those that can."""
    kind = getattr(config, "model_type", None)
    known = ", ".join(FAMILIES)
    if kind not in FAMILIES:
        raise BadInputError(
            f"expected a model of type {known}, got {kind}", hint="choose a model of these types"
        )
    if getattr(config, "headwise", None):
        raise BadInputError(
            "expected a model that was not cut before, got one that headwise wrote",
            hint="cut the original to the smaller size",
        )
    rotary = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if kind != "bert" and rotary != "default":
        raise BadInputError(
            f"expected rotary positions of type default, got {rotary}",
            hint="choose a model without scaled rotary positions",
        )


def attention_parts(model: Any) -> list[AttentionParts]:
    """Return the maps of every attention layer of a supported model, in order."""
    config = model.config
    refuse_unsupported(config)
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    theta = None if is_encoder(config) else config.rope_parameters["rope_theta"]
    return [
        AttentionParts(
            **block_maps(block, config), heads=heads, kv_heads=kv_heads, rope_theta=theta
        )
        for block in attention_blocks(model)
    ]


def block_maps(block: Any, config: Any) -> dict[str, nn.Linear]:
    """Return the query, key, value and output maps of a layer, cut or not."""
    if is_encoder(config):
        own, output = block.attention.self, block.attention.output.dense
        return {"query": own.query, "key": own.key, "value": own.value, "output": output}
    own = block.self_attn
    return {"query": own.q_proj, "key": own.k_proj, "value": own.v_proj, "output": own.o_proj}


def is_encoder(config: Any) -> bool:
    """Whether the model is an encoder: no rotary positions, no KV cache."""
    return config.model_type == "bert"


def attention_blocks(model: Any) -> Any:
    """Return the layers that hold attention, in order."""
    inner = model.base_model
    return inner.encoder.layer if is_encoder(model.config) else inner.layers
