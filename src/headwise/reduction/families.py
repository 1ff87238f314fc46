"""The Hugging Face families that can be cut, and where their attention maps are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from headwise.hugging_face.reducible import known_class, refuse_other_family

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


def class_of(model: Any) -> str:
    """Return the class of transformers that a model is, or refuse one that cannot be cut."""
    fields = model.config.to_dict()
    refuse_other_family(fields)
    return known_class(fields, tuple(each.__name__ for each in type(model).__mro__))


def attention_parts(model: Any) -> list[AttentionParts]:
    """Return the maps of every attention layer of a supported model, in order."""
    config = model.config
    refuse_other_family(config.to_dict())
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


def count_of_attention(model: Any) -> int:
    """Return the parameters of all attention layers, cut or not: every map and its bias."""
    own = []
    for block in attention_blocks(model):
        if is_encoder(model.config):
            own += [block.attention.self, block.attention.output.dense]
        else:
            own.append(block.self_attn)
    return sum(each.numel() for module in own for each in module.parameters())


def is_encoder(config: Any) -> bool:
    """Whether the model is an encoder: no rotary positions, no KV cache."""
    return config.model_type == "bert"


def attention_blocks(model: Any) -> Any:
    """Return the layers that hold attention, in order."""
    inner = model.base_model
    return inner.encoder.layer if is_encoder(model.config) else inner.layers


def embedded(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return the last hidden states of an encoder, whatever head it has."""
    return model.base_model(**batch).last_hidden_state
